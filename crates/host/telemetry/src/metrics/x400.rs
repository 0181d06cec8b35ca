//! The MTA of X.400.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, label};

label! {
    /// The side that has opened an association.
    X400Side("opened") {
        /// A peer.
        In = "in",
        /// This MTA.
        Out = "out",
    }
}

label! {
    /// The answer to a bind.
    X400Bind("result") {
        /// The association is open.
        Accepted = "accepted",
        /// The association is refused.
        Refused = "refused",
    }
}

label! {
    /// The kind of a unit.
    X400Unit("kind") {
        /// A message.
        Message = "message",
        /// A probe.
        Probe = "probe",
        /// A report.
        Report = "report",
    }
}

/// The MTA of X.400.
#[derive(Clone, Debug)]
pub struct X400Metrics {
    /// Connections of callers.
    pub connections: Gauge,
    /// Connections beyond the bound.
    pub connections_refused: Counter,
    /// Binds of callers.
    pub binds: Family<X400Bind, Counter>,
    /// Open associations.
    pub associations: Family<X400Side, Gauge>,
    /// Units that are safe.
    pub received: Family<X400Unit, Counter>,
    /// Octets of their contents.
    pub received_bytes: Counter,
    /// Octets of units that are coming.
    pub receiving_bytes: Gauge,
    /// Transfers of peers that were not taken.
    pub refused: Counter,
    /// Reports that the MTA has written.
    pub reports: Counter,
}

impl X400Metrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("X.400");
        Self {
            connections: to.gauge(
                "x400_connections",
                "Connections of callers that are open now",
            ),
            connections_refused: to.counter(
                "x400_connections_refused",
                "Connections closed at once (x400.connections_max)",
            ),
            binds: to.counters("x400_binds", "Binds of callers"),
            associations: to.gauges("x400_associations", "Associations that are open now"),
            received: to.counters(
                "x400_received",
                "Messages, probes and reports that are safe",
            ),
            received_bytes: to.counter("x400_received_bytes", "Octets of the contents of these"),
            receiving_bytes: to.gauge(
                "x400_receiving_bytes",
                "Octets in memory of units that peers are sending (limits.body_memory_max)",
            ),
            refused: to.counter(
                "x400_refused",
                "Transfers that were not taken: the peer keeps the unit",
            ),
            reports: to.counter("x400_reports", "Reports that this MTA has written"),
        }
    }
}
