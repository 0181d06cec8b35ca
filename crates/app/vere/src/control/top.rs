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
    /// Reason why new mail is refused at present.
    pub(crate) closed: Option<String>,
    pub(crate) totals: TopTotals,
    pub(crate) budgets: Vec<Budget>,
    /// Client whose incoming messages hold most memory.
    pub(crate) heaviest: Option<HeaviestClient>,
    /// Client whose long incoming messages hold most of the disk.
    #[serde(default)]
    pub(crate) heaviest_on_disk: Option<HeaviestClient>,
    pub(crate) replicas: Vec<ReplicaLine>,
    /// The queues, with those of adopted groups.
    pub(crate) queues: Vec<QueueRow>,
    /// Queues in total; `queues` may list a part of them.
    pub(crate) matching: usize,
}

/// Memory or disk space that a client's incoming messages hold.
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
    /// Destinations with messages (`destinations`), and paused destinations (`paused`).
    pub(crate) destinations: usize,
    pub(crate) paused: usize,
    pub(crate) oldest_seconds: Option<u64>,
}

/// A limited resource and its use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Budget {
    pub(crate) name: String,
    pub(crate) used: u64,
    /// Absent: without a limit.
    pub(crate) max: Option<u64>,
    /// Whether octets are counted.
    pub(crate) octets: bool,
}
