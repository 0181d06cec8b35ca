//! Why a volume is opened anew while its programs go on.

use crate::notice::Notice;

/// Why a volume is opened anew: a stop that a fresh opening mends. A further reason is a variant, its words, and the line of
/// its notice in [`Notice::reopen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reopen {
    /// The log lacks commits that the mount has not seen.
    #[error("the log lacks commits that this mount has not seen")]
    Gap,
    /// The volume was opened from a copy.
    #[error("the lead account answers again")]
    StandIn,
    /// The log has other numbers than before.
    #[error("the log has other numbers")]
    Renumbered,
    /// The log is not the one of the local disk.
    #[error("the log is not the one that the local disk knows")]
    Unconfirmed,
    /// A page was lost below a commit of another mount.
    #[error("a page of rows was lost")]
    Behind,
    /// A row could not be read or written.
    #[error("rows could not be read")]
    Rows,
    /// Another account is the lead.
    #[error("another account is the lead")]
    LeadChanged,
    /// Content was removed before a commit named the content.
    #[error("content has to be sent once more")]
    Buried,
}

impl Reopen {
    /// Whether the reason tells that the lead does not answer: an attempt before its next answer would be in vain.
    #[must_use]
    pub const fn lacks_lead(self) -> bool {
        matches!(self, Self::StandIn)
    }
}

impl Notice {
    /// Why the volume is opened anew after a stop for this reason. None for a reason that a fresh opening does not mend: the
    /// journal's disk has failed, or the opening needs another secret.
    #[must_use]
    pub const fn reopen(&self) -> Option<Reopen> {
        match self {
            Self::Gap { .. } => Some(Reopen::Gap),
            Self::StandIn { .. } => Some(Reopen::StandIn),
            Self::Renumbered(_) => Some(Reopen::Renumbered),
            Self::Unconfirmed(_) => Some(Reopen::Unconfirmed),
            Self::Behind => Some(Reopen::Behind),
            Self::Rows(_) => Some(Reopen::Rows),
            Self::LeadChanged { .. } => Some(Reopen::LeadChanged),
            Self::Buried(_) => Some(Reopen::Buried),
            _ => None,
        }
    }
}
