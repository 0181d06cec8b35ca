//! How a damaged group becomes whole, and what an operator should know of it.

use vere_ports::spool_log::LogPosition;

/// Something about a group that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What it held here is damaged: its owner has to fill it again.
    Damaged {
        /// Which.
        group: String,
        /// What was found, and where.
        reason: String,
    },
    /// It is whole again, and what was set aside of it goes.
    Repaired {
        /// Which.
        group: String,
    },
}

/// How far a damaged group is on its way to be whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mending {
    /// It is incomplete, or not all of it was given to the log.
    Lacks,
    /// It is whole once the log is synced up to here.
    Until(LogPosition),
}
