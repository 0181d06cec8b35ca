//! The log of a volume, as an opening has read it.

use crate::format::MailId;
use crate::volume::found::Found;

/// The commits of a log.
pub(super) struct Log {
    pub(super) chain: Vec<Found>,
    /// Commits outside the chain.
    pub(super) outside: Vec<Found>,
    /// Commits that commits before the chain's first one replace.
    pub(super) merged: Vec<MailId>,
}
