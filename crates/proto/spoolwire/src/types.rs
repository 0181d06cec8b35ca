//! The numbers that travel in frames, each with its own type.

use std::fmt;

use crate::charter::{KeptGrants, QueueCharter};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$inner> for $name {
            fn from(number: $inner) -> Self {
                Self(number)
            }
        }

        impl From<$name> for $inner {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    };
}

number! {
    /// A queue within its group. The owner chooses it, from 0 up and below [`QUEUES_MAX`].
    QueueId(u32)
}
number! {
    /// A record within its queue: increasing, in acceptance order. The owner chooses it; a number
    /// that was refused is left out.
    RecordId(u64)
}
number! {
    /// The transaction number of a mutation within its group: 1, 2, 3 and so on without a gap.
    /// 0 stands for "none yet".
    Txn(u64)
}
number! {
    /// Matches an answer that carries data with its request; the asker chooses it.
    Seq(u64)
}
number! {
    /// The life of a node's memory: a node that lost what it held comes back under another one.
    Incarnation(u64)
}

/// Queues of one group, at most.
pub const QUEUES_MAX: u32 = 262_144;

/// Longest name of a group or a queue, in octets.
pub const NAME_MAX: usize = 255;

/// Longest metadata of a record, in octets.
pub const META_MAX: usize = 1 << 20;

/// Transactions that an owner may have in flight, and for which a node remembers refusals.
pub const WINDOW_TXNS_MAX: u64 = 65_536;

impl Txn {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl RecordId {
    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// What a queue may hold; a PUT beyond it is refused with `QUEUE_FULL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Records.
    pub length_max: u64,
    /// Octets of metadata and bodies.
    pub bytes_max: u64,
}

impl QueueLimits {
    /// No limits but those of the node.
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

/// A queue as its node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStat {
    /// Its number.
    pub id: QueueId,
    /// Its name: UTF-8, 1 to [`NAME_MAX`] octets.
    pub name: String,
    /// What it may hold.
    pub limits: QueueLimits,
    /// Accounts that may read it beside those that may own its group; none: those that may read its group.
    pub readers: KeptGrants,
    /// Its oldest record; equal to `next` when it is empty.
    pub first: RecordId,
    /// The number above every record it ever held.
    pub next: RecordId,
    /// Records it holds.
    pub length: u64,
    /// Octets of metadata and bodies it holds.
    pub bytes: u64,
}

impl QueueStat {
    /// What it was made with, beside its name.
    #[must_use]
    pub const fn charter(&self) -> QueueCharter<'_> {
        QueueCharter {
            limits: self.limits,
            readers: self.readers.get(),
        }
    }
}

/// A node and one of its groups in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStat {
    /// The life of the node's memory.
    pub incarnation: Incarnation,
    /// Last transaction of the group that the node has processed.
    pub processed: Txn,
    /// Last transaction of the group that the node has acknowledged.
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
    /// The epoch of the group's owner; 0 while nobody fenced it.
    pub epoch: u64,
    /// Octets of the group's frames that lie on disk for want of memory.
    pub spilled: u64,
    /// Octets of metadata and bodies the group may hold.
    pub bytes_max: u64,
    /// How much of what the node may hold of all groups it does, in memory and beside it: in thousandths. At
    /// 1,000 it refuses new records.
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
