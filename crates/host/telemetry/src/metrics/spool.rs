//! The spool nodes as their owner sees them.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, escape, label};

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

label! {
    /// What came of a message or report that was given to the nodes.
    CommitResult("result") {
        /// All nodes that count hold it.
        Acknowledged = "acknowledged",
        /// A node refused it.
        Refused = "refused",
        /// It was not acknowledged in time.
        Late = "late",
        /// There was nobody to give it to, or too much waits already.
        Unavailable = "unavailable",
    }
}

/// The spool nodes as their owner sees them.
#[derive(Clone, Debug)]
pub struct SpoolMetrics {
    /// 1 while the node is connected and holds everything, else 0.
    pub connected: Family<NodeName, Gauge>,
    /// Connections to the node that broke.
    pub disconnections: Family<NodeName, Counter>,
    /// Messages and reports given to the nodes.
    pub commits: Family<CommitResult, Counter>,
    /// Time until a message or report was acknowledged.
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
            commits: to.counters(
                "spool_commits",
                "Messages and reports given to the nodes, by what came of it",
            ),
            acknowledge_seconds: to.times(
                "spool_acknowledge_seconds",
                "Time until a message or report was acknowledged by all nodes that count",
            ),
        }
    }
}
