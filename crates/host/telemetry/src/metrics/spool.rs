//! The spool nodes as their owner sees them.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, escape};

/// A spool node by its name in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeName(pub String);

impl EncodeLabelSet for NodeName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("node", escape(&self.0))].encode(encoder)
    }
}

impl Label for NodeName {
    fn describe() -> String {
        "`node`: name in the settings".to_owned()
    }
}

/// The spool nodes as their owner sees them.
#[derive(Clone, Debug)]
pub struct SpoolMetrics {
    /// 1 while the node is connected and holds everything, else 0.
    pub connected: Family<NodeName, Gauge>,
    /// Connections to the node that broke.
    pub disconnections: Family<NodeName, Counter>,
    /// Changes that the node has acknowledged.
    pub acknowledged: Family<NodeName, Counter>,
    /// Changes that the node has refused.
    pub refused: Family<NodeName, Counter>,
    /// Octets sent and not acknowledged.
    pub unacknowledged_bytes: Family<NodeName, Gauge>,
    /// Time from a change to its acknowledgement by all nodes that count.
    pub acknowledge_seconds: Histogram,
}

impl SpoolMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("Spool");
        Self {
            connected: to.gauges(
                "spool_connected",
                "1 while the node is connected and holds everything",
            ),
            disconnections: to
                .counters("spool_disconnections", "Connections to the node that broke"),
            acknowledged: to.counters(
                "spool_acknowledged",
                "Changes that the node has acknowledged",
            ),
            refused: to.counters("spool_refused", "Changes that the node has refused"),
            unacknowledged_bytes: to.gauges(
                "spool_unacknowledged_bytes",
                "Octets sent to the node and not acknowledged",
            ),
            acknowledge_seconds: to.times(
                "spool_acknowledge_seconds",
                "Time from a change to its acknowledgement by all nodes that count",
            ),
        }
    }
}
