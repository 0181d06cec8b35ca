//! What `vere queue top` is told.

use serde::{Deserialize, Serialize};

use super::{QueueRow, ReplicaLine};

/// All that `vere queue top` shows of one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TopSample {
    /// `gateway.name`.
    pub gateway: String,
    /// The time of the sample.
    pub time: String,
    /// The same in milliseconds, for rates.
    pub millis: u64,
    /// Reason why new mail is refused at present.
    pub closed: Option<String>,
    /// Whether deliveries may begin: the owner holds the lease of its queues. Absent from earlier versions.
    #[serde(default)]
    pub delivers: Option<bool>,
    /// Sums of all queues.
    pub totals: TopTotals,
    /// Limited resources.
    pub budgets: Vec<Budget>,
    /// Client whose incoming messages hold most memory.
    pub heaviest: Option<HeaviestClient>,
    /// Client whose long incoming messages hold most of the disk.
    #[serde(default)]
    pub heaviest_on_disk: Option<HeaviestClient>,
    /// The replicas of the queues.
    pub replicas: Vec<ReplicaLine>,
    /// The queues, with those of adopted groups.
    pub queues: Vec<QueueRow>,
    /// Queues in total; `queues` may list a part of them.
    pub matching: usize,
}

/// Memory or disk space that a client's incoming messages hold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HeaviestClient {
    /// An address, an IPv6 network or a user of this machine.
    pub client: String,
    /// Octets of their bodies.
    pub octets: u64,
    /// Messages in the queue.
    pub messages: usize,
}

/// All queues together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TopTotals {
    /// Messages in the queue.
    pub messages: usize,
    /// Messages that wait for their next attempt.
    pub deferred: usize,
    /// Messages in delivery.
    pub in_flight: usize,
    /// Messages that an operator holds singly.
    pub held: usize,
    /// Messages that came since the start of the gateway.
    pub came: u64,
    /// Messages that left the queue for good.
    pub left: u64,
    /// Destinations with messages.
    pub destinations: usize,
    /// Paused destinations.
    pub paused: usize,
    /// The age of the oldest message, in seconds.
    pub oldest_seconds: Option<u64>,
}

/// A limited resource and its use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Budget {
    /// The name of the resource.
    pub name: String,
    /// The amount in use.
    pub used: u64,
    /// Absent: without a limit.
    pub max: Option<u64>,
    /// Whether octets are counted.
    pub octets: bool,
}
