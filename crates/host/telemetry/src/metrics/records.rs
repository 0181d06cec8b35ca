//! Lines about messages for other systems.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::Declarations;

/// Lines about messages for other systems.
#[derive(Clone, Debug)]
pub struct RecordMetrics {
    /// Lines safe in the sink.
    pub written: Counter,
    /// Batches of lines not accepted by the sink.
    pub failures: Counter,
    /// Octets of waiting lines.
    pub waiting_bytes: Gauge,
    /// Senders turned away since too much waits.
    pub refused: Counter,
}

impl RecordMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Records");
        Self {
            written: to.counter(
                "records_written",
                "Lines safe in the file or on the web server",
            ),
            failures: to.counter(
                "records_failures",
                "Batches of lines refused by file or web server, and repeated later",
            ),
            waiting_bytes: to.gauge("records_waiting_bytes", "Octets of lines that wait"),
            refused: to.counter(
                "records_refused",
                "Messages refused (452) since too many lines wait",
            ),
        }
    }
}
