//! Every reason of a host to say no, and its response (RFC 9051 section 7.1, RFC 5530).

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Peer: the mailbox does not exist.
    NoMailbox,
    /// Peer: the target mailbox does not exist; the client could create the mailbox.
    NoTarget,
    /// Peer: the mailbox already exists.
    Exists,
    /// Peer: the mailbox name is invalid.
    Name,
    /// Peer: INBOX stays.
    Inbox,
    /// Peer: there are mailboxes below, and the name alone cannot go.
    HasChildren,
    /// Peer: no mailbox can have this special use.
    SpecialUse,
    /// Policy: the number of mailboxes or keywords is at the limit.
    TooMany,
    /// Policy: a search has more keys than may be for which messages are read.
    ManyTexts,
    /// Policy: the quota is used up.
    OverQuota,
    /// Policy: the message is too large.
    TooBig,
    /// Peer: the open mailbox was removed.
    Gone,
    /// Policy: the account was removed.
    Removed,
    /// Policy: the password of this login has been replaced.
    Expired,
    /// Host: the operation is impossible now.
    Unavailable,
}

impl Refusal {
    /// The response code and the text behind `NO` or `BYE`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoMailbox => "[NONEXISTENT] no such mailbox",
            Self::NoTarget => "[TRYCREATE] no such mailbox",
            Self::Exists => "[ALREADYEXISTS] there is such a mailbox",
            Self::Name => "[CANNOT] no mailbox can have this name",
            Self::Inbox => "[CANNOT] not with INBOX",
            Self::HasChildren => "[HASCHILDREN] there are mailboxes below",
            Self::SpecialUse => "[USEATTR] no mailbox can have this use",
            Self::TooMany => "[LIMIT] there are too many already",
            Self::ManyTexts => "[LIMIT] more than 100 texts and dates to look for in messages",
            Self::OverQuota => "[OVERQUOTA] the quota is used up",
            Self::TooBig => "[TOOBIG] the message is too large",
            Self::Gone => "[NONEXISTENT] the mailbox is gone",
            Self::Removed => "[CONTACTADMIN] the account was removed",
            Self::Expired => "[EXPIRED] the password was changed, log in again",
            Self::Unavailable => "[UNAVAILABLE] not possible now, try again later",
        }
    }
}
