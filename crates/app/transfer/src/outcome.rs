//! The outcome of single messages.

use vere_imap::Uid;

/// The outcome of a message at its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    /// The target holds the message now; with its UID, if reported.
    Kept(Option<Uid>),
    /// The target refuses the message.
    Refused(String),
    /// The account at the target is full (`OVERQUOTA`, RFC 5530): further messages would be refused as well.
    Full(String),
}
