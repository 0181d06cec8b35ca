//! What came of single messages.

use vere_imap::Uid;

/// What became of a message at its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    /// It is there now; under this UID, if that was said.
    Kept(Option<Uid>),
    /// The target does not take it.
    Refused(String),
    /// The account at the target is full (`OVERQUOTA`, RFC 5530): nor would others be taken.
    Full(String),
}
