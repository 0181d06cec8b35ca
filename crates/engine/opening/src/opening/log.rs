//! The log of a volume, as an opening has read it.

use vere_order::found::Found;

use crate::format::MailId;

/// The commits of a log.
#[derive(Debug)]
pub struct Log {
    /// The commits that the state of the volume has.
    pub chain: Vec<Found>,
    /// Commits outside the chain.
    pub outside: Vec<Found>,
    /// Commits that commits before the chain's first one replace.
    pub merged: Vec<MailId>,
}
