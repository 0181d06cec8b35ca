//! Reports about what becomes of parts in the queues, and where they go.

use bytes::Bytes;
use vere_mta400::Outcome;
use vere_queue::Report;
use vere_units::{Timestamp, TraceId};

use crate::intake;
use crate::process::Process;

/// Writes the report about a stored unit, and decides where it goes. No recipient may require a report, and the stored unit may be unreadable: `None`.
pub(crate) fn write(
    process: &Process,
    original: &Bytes,
    report: &Report,
    now: Timestamp,
) -> Option<(TraceId, Outcome)> {
    let id = process.fresh_id().to_string();
    match vere_switch::report(&process.mta(), original, report, (&id, now)) {
        // The MTA refuses no report of its own.
        Ok(report) => intake::reported(process, Box::new(report?), now).ok(),
        Err(error) => {
            tracing::error!(%error, "cannot read a stored unit: no report about it");
            None
        }
    }
}
