//! Why the store does not do as asked.

use vere_ports::mail_meta::MetaError;

/// The reason for a failed operation. A failed operation changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller's fault: not a name of a mailbox.
    #[error("not a mailbox name")]
    Name,
    /// The caller's fault: not a keyword.
    #[error("not a keyword")]
    Keyword,
    /// The caller's fault: the mailbox has the maximum of keywords.
    #[error("the mailbox can have no more keywords")]
    KeywordsFull,
    /// The caller's fault: the mailbox does not exist, or was deleted.
    #[error("no such mailbox")]
    NoMailbox,
    /// The caller's fault: a mailbox of that name exists.
    #[error("there is a mailbox of that name")]
    Exists,
    /// The caller's fault: `INBOX` can be neither deleted nor renamed.
    #[error("not possible with INBOX")]
    Inbox,
    /// The caller's fault: both mailboxes must belong to one account.
    #[error("the mailboxes belong to different accounts")]
    OtherAccount,
    /// The caller's fault: the message exceeds the limit of the store.
    #[error("message exceeds {max} octets")]
    TooLarge {
        /// The limit, in octets.
        max: u64,
    },
    /// The caller's fault: the account is over quota.
    #[error("over quota")]
    OverQuota,
    /// The caller's fault: the account has the maximum of mailboxes.
    #[error("the account can have no more mailboxes")]
    MailboxesFull,
    /// The caller's fault: the operation id was used before with other content. The requesting server chooses the id,
    /// so a collision is an attack (a client guesses ids to read the mail of other accounts) or a fault of that
    /// server.
    #[error("operation id was used before with other content")]
    IdCollision,
    /// No fault: the message was expunged.
    #[error("no such message any more")]
    Gone,
    /// Local: the disk is full.
    #[error("no room on the disk")]
    DiskFull,
    /// Local: stored data fails verification; the text names the place.
    #[error("stored data is damaged: {0}")]
    Damaged(String),
    /// Local: the mailbox has no UIDs or mod-sequences left.
    #[error("the numbers of the mailbox are used up")]
    NumbersUsedUp,
    /// Local: reading, writing or syncing failed, with the error text of the system. After a failed write the store
    /// refuses every change until the store is opened again.
    #[error("store failed: {0}")]
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

impl From<MetaError> for StoreError {
    fn from(error: MetaError) -> Self {
        Self::Failed(error.to_string())
    }
}
