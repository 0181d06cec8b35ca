//! Why the store does not do as asked.

use std::fmt;

use vere_ports::mail_meta::MetaError;

/// Why an operation was not done. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller's: not a name of a mailbox.
    Name,
    /// The caller's: not a keyword.
    Keyword,
    /// The caller's: the mailbox has as many keywords as it can have.
    KeywordsFull,
    /// The caller's: there is no such mailbox, or not any more.
    NoMailbox,
    /// The caller's: there is a mailbox of that name.
    Exists,
    /// The caller's: `INBOX` cannot be deleted, nor be given another name.
    Inbox,
    /// The caller's: both mailboxes must belong to one account.
    OtherAccount,
    /// The caller's: the message is longer than the store takes.
    TooLarge {
        /// The most it takes, in octets.
        max: u64,
    },
    /// The caller's: the account has no room.
    OverQuota,
    /// The caller's: the account has as many mailboxes as it can have.
    MailboxesFull,
    /// The caller's: the operation was done before with other content. An operation is named by the
    /// server that asks for it, so this is an attack (somebody guesses names to get at others' mail)
    /// or a fault of that server.
    IdCollision,
    /// Nobody's: there is no such message any more.
    Gone,
    /// Local: no room on the disk.
    DiskFull,
    /// Local: what is stored is not what was written; where.
    Damaged(String),
    /// Local: UIDs or mod-sequences of the mailbox are used up.
    NumbersUsedUp,
    /// Local: reading, writing or syncing failed; the words of the system. After a failed write the
    /// store takes nothing more until it is opened again.
    Failed(String),
}

impl StoreError {
    /// Whether it stays so when it is tried again later without anybody changing anything.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(
            self,
            Self::OverQuota | Self::DiskFull | Self::Damaged(_) | Self::Failed(_)
        )
    }

    /// Its enhanced status code without the class (RFC 3463).
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
