//! Phases of an owner; the parent module has their table.

use vere_units::Timestamp;

/// Phase of an owner.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// The group is not this owner's yet.
    Start,
    /// The owner has claimed the group and inspects its members since then.
    Claimed {
        since: Timestamp,
    },
    /// The members list their queues and make their content safe.
    Learning {
        leader: usize,
    },
    Open,
    /// Another owner has the group.
    Fenced,
}
