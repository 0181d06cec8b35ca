//! Messages kept aside by the judgement.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, label};

label! {
    /// How a message left the quarantine.
    QuarantineEnd("result") {
        /// A person released the message for delivery.
        Released = "released",
        /// A person had the message removed.
        Refused = "refused",
        /// The message was removed by age.
        Aged = "aged",
    }
}

/// Messages kept aside by the judgement.
#[derive(Clone, Debug)]
pub struct QuarantineMetrics {
    /// Messages in the quarantine, counted once per destination.
    pub messages: Gauge,
    /// Messages that left the quarantine, by the manner.
    pub ended: Family<QuarantineEnd, Counter>,
    /// Digests for recipients.
    pub digests: Counter,
    /// Senders learned by releases.
    pub senders: Gauge,
}

impl QuarantineMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Quarantine");
        Self {
            messages: to.gauge(
                "gateway_quarantine_messages",
                "Messages in the quarantine, counted once per destination",
            ),
            ended: to.counters(
                "gateway_quarantine_ended",
                "Messages that left the quarantine, counted once per destination",
            ),
            digests: to.counter(
                "gateway_quarantine_digests",
                "Digests that told recipients of mail in the quarantine",
            ),
            senders: to.gauge(
                "gateway_learned_senders",
                "Senders learned by releases from the quarantine, counted once per recipient",
            ),
        }
    }
}
