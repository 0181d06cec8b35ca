//! The spool nodes, as seen by their owner.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::declarations::{Declarations, Label, label};

/// The name of a spool node in the settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NodeName(pub String);

impl EncodeLabelSet for NodeName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("node", self.0.as_str())].encode(encoder)
    }
}

impl Label for NodeName {
    fn describe() -> String {
        "`node`: name in the settings".to_owned()
    }
}

/// The name of a group of queues: the name of its gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupName(pub String);

impl EncodeLabelSet for GroupName {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("group", self.0.as_str())].encode(encoder)
    }
}

impl Label for GroupName {
    fn describe() -> String {
        "`group`: name of the gateway that owns the queues".to_owned()
    }
}

label! {
    /// The result of committing a message or report to the nodes.
    CommitResult("result") {
        /// All full nodes hold the record.
        Acknowledged = "acknowledged",
        /// A node refused the record.
        Refused = "refused",
        /// The record was not acknowledged in time.
        Late = "late",
        /// No node was available, or too many records are waiting already.
        Unavailable = "unavailable",
    }
}

/// The spool nodes, as seen by their owner.
#[derive(Clone, Debug)]
pub struct SpoolMetrics {
    /// 1 while the node is connected and holds everything, else 0.
    pub connected: Family<NodeName, Gauge>,
    /// 1 while the node has been slower than the other nodes for long, or is excluded for slowness,
    /// else 0.
    pub slow: Family<NodeName, Gauge>,
    /// 1 while acknowledged records are in the memory of a single node and in no log, else 0.
    pub one_memory: Gauge,
    /// Broken connections to the node.
    pub disconnections: Family<NodeName, Counter>,
    /// When the certificate ends that the node showed last, in seconds since 1970.
    pub node_certificate_expiry_seconds: Family<NodeName, Gauge>,
    /// 1 while deliveries may begin, else 0.
    pub lease_held: Family<GroupName, Gauge>,
    /// Seconds for which deliveries may begin without a renewal of the lease.
    pub lease_remaining_seconds: Family<GroupName, Gauge>,
    /// Messages that the queues knew and the nodes did not have any more.
    pub records_lost: Counter,
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
            slow: to.gauges(
                "spool_slow",
                "1 while the node answers later than the others for long, or is left alone for that",
            ),
            one_memory: to.gauge(
                "spool_one_memory",
                "1 while acknowledged mail is in the memory of a single node and in no log",
            ),
            disconnections: to
                .counters("spool_disconnections", "Connections to the node that broke"),
            node_certificate_expiry_seconds: to.gauges(
                "spool_node_certificate_expiry_seconds",
                "When the certificate ends that the node showed last, in seconds since 1970",
            ),
            lease_held: to.gauges(
                "spool_lease_held",
                "1 while deliveries may begin: the group's lease is held",
            ),
            lease_remaining_seconds: to.gauges(
                "spool_lease_remaining_seconds",
                "Seconds for which deliveries may begin without a renewal of the lease",
            ),
            records_lost: to.counter(
                "spool_records_lost",
                "Messages that the queues knew and that were not in the spool any more",
            ),
            commits: to.counters(
                "spool_commits",
                "Messages and reports given to the nodes, by result",
            ),
            acknowledge_seconds: to.times(
                "spool_acknowledge_seconds",
                "Time until a message or report was acknowledged by all nodes that count",
            ),
        }
    }
}
