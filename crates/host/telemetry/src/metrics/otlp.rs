//! The log on its way to a collector.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, label};

label! {
    /// What became of a record.
    OtlpResult("result") {
        /// The collector has taken it.
        Sent = "sent",
        /// It was dropped: too many waited.
        Dropped = "dropped",
        /// The collector refused it.
        Refused = "refused",
    }
}

/// The log on its way to a collector.
#[derive(Clone, Debug)]
pub struct OtlpMetrics {
    /// Records by result.
    pub records: Family<OtlpResult, Counter>,
    /// Records that wait.
    pub waiting: Gauge,
}

impl OtlpMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Log to a collector");
        Self {
            records: to.counters(
                "otlp_records",
                "Records of the log for the collector, by what became of them",
            ),
            waiting: to.gauge(
                "otlp_records_waiting",
                "Records of the log that wait for the collector",
            ),
        }
    }
}
