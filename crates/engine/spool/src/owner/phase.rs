//! How far an owner is; the table stands in the module above.

use vere_units::Timestamp;

/// How far an owner is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// The group is not this owner's yet.
    Start,
    /// It is; its members are being looked at since then.
    Claimed {
        since: Timestamp,
    },
    /// They are asked which queues there are, and make safe what they have.
    Learning {
        leader: usize,
    },
    Open,
    /// It is another owner's.
    Fenced,
}
