//! Why the store does not do as asked.

use std::fmt;

use vere_ports::mail_meta::MetaError;

/// The reason for a failed operation. A failed operation changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller's fault: not a name of a mailbox.
    Name,
    /// The caller's fault: not a keyword.
    Keyword,
    /// The caller's fault: the mailbox has the maximum of keywords.
    KeywordsFull,
    /// The caller's fault: the mailbox does not exist, or was deleted.
    NoMailbox,
    /// The caller's fault: a mailbox of that name exists.
    Exists,
    /// The caller's fault: `INBOX` can be neither deleted nor renamed.
    Inbox,
    /// The caller's fault: both mailboxes must belong to one account.
    OtherAccount,
    /// The caller's fault: the message exceeds the limit of the store.
    TooLarge {
        /// The limit, in octets.
        max: u64,
    },
    /// The caller's fault: the account is over quota.
    OverQuota,
    /// The caller's fault: the account has the maximum of mailboxes.
    MailboxesFull,
    /// The caller's fault: the operation id was used before with other content. The requesting server chooses the id,
    /// so a collision is an attack (a client guesses ids to read the mail of other accounts) or a fault of that
    /// server.
    IdCollision,
    /// No fault: the message was expunged.
    Gone,
    /// Local: the disk is full.
    DiskFull,
    /// Local: stored data fails verification; the text names the place.
    Damaged(String),
    /// Local: the mailbox has no UIDs or mod-sequences left.
    NumbersUsedUp,
    /// Local: reading, writing or syncing failed, with the error text of the system. After a failed write the store
    /// refuses every change until the store is opened again.
    Failed(String),
}

impl StoreError {
    /// Whether a later retry fails as well, unless an administrator or user intervenes.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(
            self,
            Self::OverQuota | Self::DiskFull | Self::Damaged(_) | Self::Failed(_)
        )
    }

    /// The enhanced status code without the class (RFC 3463).
    #[must_use]
    pub fn status(&self) -> (u8, u8) {
        match self {
            Self::NoMailbox => (1, 1),
            Self::OverQuota => (2, 2),
            Self::TooLarge { .. } => (3, 4),
            Self::DiskFull => (3, 1),
            Self::IdCollision => (7, 0),
            _ => (3, 0),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("not a mailbox name"),
            Self::Keyword => f.write_str("not a keyword"),
            Self::KeywordsFull => f.write_str("the mailbox can have no more keywords"),
            Self::NoMailbox => f.write_str("no such mailbox"),
            Self::Exists => f.write_str("there is a mailbox of that name"),
            Self::Inbox => f.write_str("not possible with INBOX"),
            Self::OtherAccount => f.write_str("the mailboxes belong to different accounts"),
            Self::TooLarge { max } => write!(f, "message exceeds {max} octets"),
            Self::OverQuota => f.write_str("over quota"),
            Self::MailboxesFull => f.write_str("the account can have no more mailboxes"),
            Self::IdCollision => f.write_str("operation id was used before with other content"),
            Self::Gone => f.write_str("no such message any more"),
            Self::DiskFull => f.write_str("no room on the disk"),
            Self::Damaged(place) => write!(f, "stored data is damaged: {place}"),
            Self::NumbersUsedUp => f.write_str("the numbers of the mailbox are used up"),
            Self::Failed(reason) => write!(f, "store failed: {reason}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<MetaError> for StoreError {
    fn from(error: MetaError) -> Self {
        Self::Failed(error.to_string())
    }
}
