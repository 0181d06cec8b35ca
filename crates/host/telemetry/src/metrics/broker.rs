//! The calls of the broker to next hops, which the front shows.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::declarations::{Declarations, label};

label! {
    /// The result of a call to a next hop.
    CallResult("result") {
        /// The next hop accepts the recipient.
        Accepted = "accepted",
        /// The next hop refuses the recipient for good.
        Refused = "refused",
        /// The next hop cannot be asked, or gives no definite answer.
        Unavailable = "unavailable",
    }
}

label! {
    /// The origin of an answer about a recipient that a next hop decides about.
    CallAnswer("source") {
        /// An earlier call.
        Kept = "kept",
        /// A call that another question had begun.
        Shared = "shared",
        /// A call of its own.
        Called = "called",
        /// No call: the next hop failed a moment ago, or a bound is reached.
        Denied = "denied",
    }
}

/// Calls to next hops about recipients.
#[derive(Clone, Debug)]
pub struct BrokerMetrics {
    /// Calls by result.
    pub calls: Family<CallResult, Counter>,
    /// Answers about recipients of other systems, by origin.
    pub call_answers: Family<CallAnswer, Counter>,
    /// Connections to next hops.
    pub call_connections: Counter,
}

impl BrokerMetrics {
    /// Declares the metrics in the section of the front.
    pub(super) fn declare(to: &mut Declarations) -> Self {
        Self {
            calls: to.counters(
                "broker_calls",
                "Calls of the broker to next hops about recipients (route.call_ahead), since its start",
            ),
            call_answers: to.counters(
                "broker_call_answers",
                "Answers to front and workers about recipients that next hops decide about",
            ),
            call_connections: to.counter(
                "broker_call_connections",
                "Connections begun for calls to next hops",
            ),
        }
    }
}
