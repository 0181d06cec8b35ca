//! Commits on the way to the log.

use bytes::Bytes;

use crate::format::MailId;

/// A commit on the way.
#[derive(Debug)]
pub struct Sent {
    /// The commit.
    pub id: MailId,
    /// Its parent.
    pub parent: MailId,
    /// Its generation.
    pub generation: u64,
    /// The mail, kept for another try.
    pub mail: Bytes,
    pub(crate) state: State,
}

/// How far a commit on the way has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// To be appended.
    Waiting,
    /// APPEND is under way.
    Appending,
    /// The mail may be in the log or not.
    Unknown,
    /// The mail is in the log.
    At(u32),
}

impl Sent {
    /// The commit, as the order wants it.
    pub(crate) const fn child(&self) -> Child {
        Child {
            id: self.id,
            parent: self.parent,
            covers: 0,
        }
    }
}

/// An authentic commit, as the order wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// The commit.
    pub id: MailId,
    /// Its parent.
    pub parent: MailId,
    /// The generation that the commit's checkpoint covers, which the chain has therefore; 0 for none.
    pub covers: u64,
}
