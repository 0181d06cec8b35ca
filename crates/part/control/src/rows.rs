//! Values of answers: queues, messages, orders, replicas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vere_delivery::HoldOutcome;

/// A message in one queue after it was held or released.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HoldRow {
    /// The trace id of the message.
    pub id: String,
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The result for this queue.
    pub outcome: HoldOutcome,
    /// A time, or `taken back`.
    pub held_until: Option<String>,
    /// Whether those behind it wait for it.
    pub in_order: bool,
}

/// What is ordered for a destination, or that one message is held; a time, or `taken back`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderRow {
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The dead gateway for whose queue it is ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The message that is held alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Start of the hold, if the record has the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// Why a single message is held: `operator`, `sending` for the bounds of its account, or `quarantine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for: Option<String>,
    /// The end of the hold: a time, or `taken back`.
    pub held_until: Option<String>,
    /// The end of the refusal: a time, or `taken back`.
    pub refused_until: Option<String>,
    /// Where its mail goes instead.
    pub way: Option<String>,
    /// The end of the reroute: a time, or `taken back`.
    pub way_until: Option<String>,
}

/// One queue as `vere queue list --json` prints it; times are RFC 3339, `octets` counts bodies.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueueRow {
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// The dead gateway whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Messages in the queue.
    pub messages: usize,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages that came since this gateway process knows the queue.
    pub came: u64,
    /// Messages that left the queue for good.
    pub left: u64,
    /// How many messages of which priority are ready.
    pub priorities: BTreeMap<i8, usize>,
    /// Messages that wait for their next attempt.
    pub deferred: usize,
    /// Messages in delivery.
    pub in_flight: usize,
    /// Messages that an operator holds singly.
    pub held: usize,
    /// Messages in the quarantine.
    #[serde(default)]
    pub quarantined: usize,
    /// Open connections to the hosts of the destination.
    pub connections: usize,
    /// How many there may be now, with those of other destinations that the same hosts serve.
    pub connections_max: usize,
    /// Whether its messages leave one at a time, in the order in which they were taken.
    pub in_order: bool,
    /// The hosts that serve it, once they are known.
    pub site: Option<String>,
    /// The average time that a message takes there.
    pub latency_ms: Option<u64>,
    /// The end of a pause of the destination.
    pub paused_until: Option<String>,
    /// A time, or `taken back`.
    pub held_until: Option<String>,
    /// A time, or `taken back`.
    pub refused_until: Option<String>,
    /// Where its mail goes instead, by an operator's order.
    pub way: Option<String>,
    /// Whether no route of the settings in force leads to its next hop, and no order leads elsewhere.
    #[serde(default)]
    pub unrouted: bool,
    /// The acceptance of the oldest message.
    pub oldest: Option<String>,
    /// The age of the oldest message.
    pub oldest_seconds: Option<u64>,
    /// The last complaint, of its hosts or about them.
    pub last_reply: Option<String>,
    /// What its hosts said last about a message, good or bad.
    #[serde(default)]
    pub last_answer: Option<String>,
}

/// One replica of the gateway's queues as `vere spool stat --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReplicaLine {
    /// The name of the spool node.
    pub node: String,
    /// The active connection: `run` or `down`.
    pub active: String,
    /// The connection on standby: `ready` or `down`.
    pub standby: String,
    /// `sync`, `slow` (the same, and it is to be replaced), `rebuilding`, `catching up` (it is given
    /// what it missed), `out`, `out, slow` (left alone for that), or what is wrong with it.
    pub sync: String,
    /// The last transaction it acknowledged.
    pub transactions: u64,
    /// Transactions sent to it and not acknowledged.
    pub in_flight: u64,
    /// Whether acknowledged mail is in its memory and nowhere else.
    #[serde(default)]
    pub alone: bool,
    /// Records copied to it, while it is being rebuilt.
    pub copied: Option<u64>,
    /// Why it is not connected.
    pub trouble: Option<String>,
}

/// One message as `vere queue show --json` prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MessageRow {
    /// The trace id of the message.
    pub id: String,
    /// The dead gateway in whose queue it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The name of the destination: a domain, `relay:HOST:PORT` or `local`.
    pub destination: String,
    /// `ready`, `in flight`, `deferred`, `held` or `quarantined`.
    pub state: String,
    /// The time of acceptance.
    pub accepted: String,
    /// Delivery attempts so far.
    pub attempts: u16,
    /// The time of the next attempt.
    pub not_before: Option<String>,
    /// A time, or `taken back`, if an operator holds it.
    pub held_until: Option<String>,
    /// Since when, where its record says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// Why a single message is held: `operator`, `sending` for the bounds of its account, or `quarantine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_for: Option<String>,
    /// Octets of the body.
    pub size: u32,
    /// From -9 to 9 (MT-PRIORITY).
    pub priority: i8,
    /// Empty for the null reverse-path; absent when the spool does not answer.
    pub reverse_path: Option<String>,
    /// Addresses of the recipients.
    pub recipients: Vec<String>,
    /// The last reply of a next hop about the message.
    pub last_reply: Option<String>,
}
