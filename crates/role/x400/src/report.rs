//! Reports about what becomes of parts in the queues (X.411 clause 14.4).

use bytes::Bytes;
use vere_delivery::Notice;
use vere_mta400::{Fate, RecordRecipient};
use vere_process::clock;
use vere_queue::report::ReportKind;
use vere_queue::{Report, ReportedRecipient};
use vere_units::{Timestamp, TraceId};
use vere_x400::{Apdu, TypeOfMtsUser};

use crate::intake;
use crate::process::Process;
use crate::records::parts;

/// Writes the report about a stored unit. Without recipients of whom anything is to be told the report has no parts.
pub(crate) fn write(process: &Process, original: &Bytes, report: &Report) -> Notice {
    let now = clock::now();
    let made = made(process, original, report, now);
    let (trace, parts) = made.unwrap_or_else(|| (process.fresh_id(), Vec::new()));
    Notice {
        kind: report.kind,
        to: report.to.clone(),
        trace,
        parts,
    }
}

fn made(
    process: &Process,
    original: &Bytes,
    report: &Report,
    now: Timestamp,
) -> Option<(TraceId, Vec<vere_delivery::Part>)> {
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
    let (trace, outcome) = intake::reported(process, Box::new(report), now).ok()??;
    Some((trace, parts(&outcome, trace, now)))
}

fn fate(kind: ReportKind, one: &ReportedRecipient, now: Timestamp) -> Fate {
    match kind {
        ReportKind::Failed => Fate::of_status(&one.status, &one.diagnostic),
        ReportKind::Delivered | ReportKind::Relayed | ReportKind::Expanded | ReportKind::Delayed => {
            Fate::Delivered {
                at: now.into(),
                user: TypeOfMtsUser::Private,
            }
        }
    }
}
