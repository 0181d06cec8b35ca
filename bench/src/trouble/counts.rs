//! The counts of a crowd, while it gathers and holds.

use std::collections::BTreeMap;

/// The counts of a crowd.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    /// Clients at the end of their script, in the state to hold.
    pub(crate) holding: usize,
    /// Clients under way, or not begun.
    pub(crate) under_way: usize,
    /// Clients that the server ended, by the beginning of the server's last line.
    pub(crate) ended: BTreeMap<String, usize>,
    /// Messages that clients have sent whole.
    pub(crate) sent: u64,
    /// Replies to these messages, by code.
    pub(crate) replies: BTreeMap<String, u64>,
}

impl Counts {
    /// Number of all ended clients.
    pub(super) fn all_ended(&self) -> usize {
        self.ended.values().sum()
    }

    /// Messages that the server has accepted.
    pub(super) fn acknowledged(&self) -> u64 {
        self.replies.get("250 2.0.0").copied().unwrap_or_default()
    }

    /// Whether each message has its reply.
    pub(super) fn is_answered(&self) -> bool {
        self.replies.values().sum::<u64>() >= self.sent
    }
}
