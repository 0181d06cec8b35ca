//! What `vere queue top` is told.

use serde::{Deserialize, Serialize};

use super::{QueueRow, ReplicaLine};

/// All that `vere queue top` shows of one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TopSample {
    /// `gateway.name`.
    pub(crate) gateway: String,
    pub(crate) time: String,
    /// The same in milliseconds, for rates.
    pub(crate) millis: u64,
    /// Why no mail is taken now.
    pub(crate) closed: Option<String>,
    pub(crate) totals: TopTotals,
    pub(crate) budgets: Vec<Budget>,
    /// The client that holds most memory with messages that it is sending.
    pub(crate) heaviest: Option<HeaviestClient>,
    /// The one whose long messages hold most of the disk.
    #[serde(default)]
    pub(crate) heaviest_on_disk: Option<HeaviestClient>,
    pub(crate) replicas: Vec<ReplicaLine>,
    /// The queues, with those of adopted groups.
    pub(crate) queues: Vec<QueueRow>,
    /// How many there are of which `queues` may be a part.
    pub(crate) matching: usize,
}

/// What a client holds of memory, or of the disk, for messages that are being received.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HeaviestClient {
    /// An address, an IPv6 network or a user of this machine.
    pub(crate) client: String,
    pub(crate) octets: u64,
    pub(crate) messages: usize,
}

/// All queues together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct TopTotals {
    pub(crate) messages: usize,
    pub(crate) deferred: usize,
    pub(crate) in_flight: usize,
    /// Messages that an operator holds one by one.
    pub(crate) held: usize,
    pub(crate) came: u64,
    pub(crate) left: u64,
    /// Destinations that have messages, and those that are paused.
    pub(crate) destinations: usize,
    pub(crate) paused: usize,
    pub(crate) oldest_seconds: Option<u64>,
}

/// Something of which there is so much, and how much of it is used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Budget {
    pub(crate) name: String,
    pub(crate) used: u64,
    /// Absent: without a limit.
    pub(crate) max: Option<u64>,
    /// Whether octets are counted.
    pub(crate) octets: bool,
}
