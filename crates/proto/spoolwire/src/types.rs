//! Limits of frames, and the state of queues and nodes.

use vere_units::{Incarnation, QueueId, RecordId, Txn};

use crate::charter::{KeptGrants, QueueCharter};

/// The most queues of a group: the number of a queue is lower.
pub const QUEUES_MAX: u32 = 262_144;

/// Longest name of a group or a queue, in octets.
pub const NAME_MAX: usize = 255;

/// Longest metadata of a record, in octets.
pub const META_MAX: usize = 1 << 20;

/// The most transactions of an owner in flight, and the window for which a node remembers refusals.
pub const WINDOW_TXNS_MAX: u64 = 65_536;

/// The capacity of a queue; a PUT above the capacity is refused with `QUEUE_FULL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Records.
    pub length_max: u64,
    /// Octets of metadata and bodies.
    pub bytes_max: u64,
}

impl QueueLimits {
    /// No limits but the limits of the node.
    pub const UNLIMITED: Self = Self {
        length_max: u64::MAX,
        bytes_max: u64::MAX,
    };
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// The state of a queue on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStat {
    /// Its number.
    pub id: QueueId,
    /// The name: UTF-8, 1 to [`NAME_MAX`] octets.
    pub name: String,
    /// The capacity.
    pub limits: QueueLimits,
    /// The accounts that may read the queue beside the accounts that may own the group; empty for the
    /// readers of the group.
    pub readers: KeptGrants,
    /// The oldest record; equal to `next` in an empty queue.
    pub first: RecordId,
    /// The number above every record ever held in the queue.
    pub next: RecordId,
    /// Records it holds.
    pub length: u64,
    /// Octets of metadata and bodies in the queue.
    pub bytes: u64,
}

impl QueueStat {
    /// The charter of the queue.
    #[must_use]
    pub const fn charter(&self) -> QueueCharter<'_> {
        QueueCharter {
            limits: self.limits,
            readers: self.readers.get(),
        }
    }
}

/// The figures of a node and of one of its groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStat {
    /// The life of the node's memory.
    pub incarnation: Incarnation,
    /// The last transaction of the group processed by the node.
    pub processed: Txn,
    /// The last transaction of the group acknowledged by the node.
    pub acknowledged: Txn,
    /// Queues of the group.
    pub queues: u64,
    /// Records of the group.
    pub records: u64,
    /// Octets of metadata and bodies of the group.
    pub bytes: u64,
    /// Octets of memory in segments, of all groups.
    pub memory_used: u64,
    /// Octets of memory the node may use.
    pub memory_max: u64,
    /// Octets of log files of the group; 0 without a log.
    pub log_bytes: u64,
    /// The epoch of the group's owner; 0 without fencing.
    pub epoch: u64,
    /// Octets of the group's frames that lie on disk for want of memory.
    pub spilled: u64,
    /// Octets of metadata and bodies the group may hold.
    pub bytes_max: u64,
    /// The used share of the node's capacity over all groups, in memory or on disk, in thousandths. At 1,000
    /// the node refuses new records.
    pub fill: u64,
    /// Whether an acknowledgement waits for the disk.
    pub synced: bool,
    /// Whether the node refuses new records for want of memory or disk.
    pub full: bool,
    /// Whether the group is incomplete here: it is being rebuilt from another node.
    pub syncing: bool,
    /// Whether what the group was here was found damaged, and is not whole again yet.
    pub damaged: bool,
}
