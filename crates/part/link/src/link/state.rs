//! State of a link.

use vere_owner::ShutReason;

/// Whether the group can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// It was never opened yet.
    Connecting,
    /// Commits are taken and acknowledged.
    Connected,
    /// Nothing is acknowledged for now; the driver keeps trying.
    Down(ShutReason),
    /// Another gateway has taken the group over, for good.
    Fenced,
}

impl LinkState {
    /// Whether new mail may be taken.
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Connected)
    }

    /// Whether it is not a matter of seconds: too few nodes are left, or none that counts.
    pub const fn is_shut(self) -> bool {
        matches!(
            self,
            Self::Down(ShutReason::TooFew | ShutReason::NoFullReplica) | Self::Fenced
        )
    }
}
