//! Repair of a damaged group, and notices to the operator.

use vere_ports::spool_log::LogPosition;

/// Notice about a group to the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The group's content on this node is damaged: its owner has to fill the group again.
    Damaged {
        /// Name of the group.
        group: String,
        /// Description and place of the damage.
        reason: String,
    },
    /// The group is complete again, and its old log is discarded.
    Repaired {
        /// Name of the group.
        group: String,
    },
}

/// Progress of repairing a damaged group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mending {
    /// The group is incomplete, or its log does not hold all of it.
    Lacks,
    /// The repair is complete once the log is synced up to this position.
    Until(LogPosition),
}
