//! Counts what happens to queues and spool.

use std::time::Duration;

use vere_delivery::Happened;
use vere_spoolwire::SpoolError;
use vere_telemetry::metrics::{CommitResult, Metrics, SpoolMetrics};

/// Counts an event that is the same for mail of any kind.
pub(crate) fn count(metrics: &Metrics, happened: &Happened<'_>) {
    match happened {
        Happened::Stored(result, took) => committed(&metrics.spool, result, *took),
        Happened::Lost(..) => {
            metrics.spool.records_lost.inc();
        }
        Happened::ClockStepped(_) => {
            metrics.queue.clock_steps.inc();
        }
        _ => {}
    }
}

/// Counts the outcome of storing a message or report in the spool, and the time taken.
fn committed<T>(spool: &SpoolMetrics, result: &Result<T, SpoolError>, took: Duration) {
    let came_to = match result {
        Ok(_) => {
            spool.acknowledge_seconds.observe(took.as_secs_f64());
            CommitResult::Acknowledged
        }
        Err(SpoolError::Refused(_) | SpoolError::Invalid) => CommitResult::Refused,
        Err(SpoolError::Timeout) => CommitResult::Late,
        Err(SpoolError::Busy | SpoolError::Closed) => CommitResult::Unavailable,
    };
    spool.commits.get_or_create(&came_to).inc();
}
