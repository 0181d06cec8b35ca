//! Reports about what becomes of parts in the queues (X.411 clause 14.4).

use bytes::Bytes;
use vere_mta400::{Fate, Mta, RecordRecipient};
use vere_queue::{Report as Queued, ReportKind, ReportedRecipient};
use vere_units::Timestamp;
use vere_x400::{Apdu, ApduError, Report, TypeOfMtsUser};

/// Writes the report that the queues ask for, about a unit in its stored form. No recipient may require a report: `None`. `id` is a
/// unique text of at most 32 characters.
///
/// # Errors
/// [`ApduError`] for a stored unit that cannot be read.
pub fn report(
    mta: &Mta,
    original: &Bytes,
    asked: &Queued,
    (id, now): (&str, Timestamp),
) -> Result<Option<Report>, ApduError> {
    let about = Apdu::split(original)?;
    let fate = |one: &ReportedRecipient| {
        let place = RecordRecipient::place_of(one.orcpt.as_deref()?)?;
        Some((place, fate(asked.kind, one, now)))
    };
    let fates: Vec<_> = asked.recipients.iter().filter_map(fate).collect();
    Ok(mta.site.report(about, &fates, now.into(), id))
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
