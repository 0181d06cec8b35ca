//! Reports about what becomes of parts in the queues (X.411 clause 14.4).

use bytes::Bytes;
use vere_mta400::{Fate, Outcome, RecordRecipient};
use vere_queue::report::ReportKind;
use vere_queue::{Report, ReportedRecipient};
use vere_units::{Timestamp, TraceId};
use vere_x400::{Apdu, TypeOfMtsUser};

use crate::intake;
use crate::process::Process;

/// Writes the report about a stored unit, and decides where it goes. No recipient may require a report, and the stored unit may be unreadable: `None`.
pub(crate) fn write(
    process: &Process,
    original: &Bytes,
    report: &Report,
    now: Timestamp,
) -> Option<(TraceId, Outcome)> {
    let about = match Apdu::split(original) {
        Ok(about) => about,
        Err(error) => {
            tracing::error!(%error, "cannot read a stored unit: no report about it");
            return None;
        }
    };
    let fate = |one: &ReportedRecipient| {
        let place = RecordRecipient::place_of(one.orcpt.as_deref()?)?;
        Some((place, fate(report.kind, one, now)))
    };
    let fates: Vec<_> = report.recipients.iter().filter_map(fate).collect();
    let id = process.fresh_id().to_string();
    let report = process.mta().site.report(about, &fates, now.into(), &id)?;
    // The MTA refuses no report of its own.
    intake::reported(process, Box::new(report), now).ok()
}

fn fate(kind: ReportKind, one: &ReportedRecipient, now: Timestamp) -> Fate {
    match kind {
        ReportKind::Failed => Fate::of_status(&one.status, &one.diagnostic),
        ReportKind::Delivered
        | ReportKind::Relayed
        | ReportKind::Expanded
        | ReportKind::Delayed => Fate::Delivered {
            at: now.into(),
            user: TypeOfMtsUser::Private,
        },
    }
}
