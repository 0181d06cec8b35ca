//! Mail accounts as places to keep mails in: what an engine asks of an account, and what an account answers. A host carries
//! the requests out over IMAP.
//!
//! Mailboxes are named relative to a folder of the volume, such as `log` or `data-0001`; the host knows prefix and delimiter.

use bytes::Bytes;

/// Names a request until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// The number of an account within its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u16);

/// Order of requests that wait for the same connections, most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// Commits.
    Commit,
    /// A program waits.
    Waited,
    /// An fsync waits for the mail.
    Synced,
    /// Data to send in the background.
    Background,
    /// Data read ahead of need.
    Ahead,
    /// Copies for replicas, garbage.
    Idle,
}

/// A range of UIDs, both ends included; no end is `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidRange {
    /// The first UID, from 1 on.
    pub first: u32,
    /// The last UID; every one from the first on, where absent.
    pub last: Option<u32>,
}

/// A part of a mail's body, in octets of the body as the account keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Offset behind the empty line that ends the header.
    pub offset: u32,
    /// Octets; the account may return fewer at the end of the body.
    pub length: u32,
}

/// A request to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Stores a mail, creating the mailbox if absent.
    Append {
        /// The mailbox.
        mailbox: String,
        /// The whole mail, with CRLF line ends and without NUL.
        mail: Bytes,
        /// Whether nothing may be stored by the same command, and order with other such mails counts: a commit.
        alone: bool,
    },
    /// Reads parts of the body of a mail, all by one command.
    Read {
        /// The mailbox.
        mailbox: String,
        /// The expected UIDVALIDITY.
        uid_validity: u32,
        /// The mail.
        uid: u32,
        /// The parts; the whole body if none.
        parts: Vec<Part>,
    },
    /// Lists mails by UID: size and subject. The answer shows every mail stored by any session before the request.
    List {
        /// The mailbox.
        mailbox: String,
        /// The mails.
        range: UidRange,
    },
    /// Finds mails by a word of the subject.
    Find {
        /// The mailbox.
        mailbox: String,
        /// The word.
        word: String,
    },
    /// Removes mails for good, and no other ones.
    Remove {
        /// The mailbox.
        mailbox: String,
        /// The expected UIDVALIDITY.
        uid_validity: u32,
        /// The mails.
        uids: Vec<u32>,
    },
    /// The names of all mailboxes of the volume.
    Mailboxes,
    /// Quota of the account.
    Quota,
    /// Watches a mailbox from now on: [`Answer::Changed`] comes once for this request, when the mailbox may have a new mail.
    Watch {
        /// The mailbox.
        mailbox: String,
    },
}

/// A mail in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The UID.
    pub uid: u32,
    /// Octets as the account keeps the mail (RFC822.SIZE).
    pub size: u32,
    /// The subject, unfolded; empty if absent.
    pub subject: String,
}

/// An answer of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The mail is stored. UIDVALIDITY and UID where the account tells (UIDPLUS).
    Appended(Option<(u32, u32)>),
    /// The parts, in order; the whole body as a single part. A part may be shorter than asked.
    Read(Vec<Bytes>),
    /// The mail is gone.
    Gone,
    /// The mails of the range that exist, by UID. `uid_next` is 0 where the account does not tell.
    Listed {
        /// UIDVALIDITY of the mailbox; 0 if there is no such mailbox.
        uid_validity: u32,
        /// UIDNEXT.
        uid_next: u32,
        /// The mails.
        mails: Vec<Listed>,
    },
    /// UIDVALIDITY and the UIDs found.
    Found(u32, Vec<u32>),
    /// The mails are removed, or were gone.
    Removed,
    /// Names of the volume's mailboxes.
    Mailboxes(Vec<String>),
    /// Used octets and the limit; `None` where the account tells no limit.
    Quota(Option<(u64, u64)>),
    /// A watched mailbox may have changed.
    Changed,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection, or one that ended. A request that was sent may have been carried out.
    #[error("the account cannot be reached: {0}")]
    Unreachable(String),
    /// The account does not accept the login.
    #[error("the account refuses the login: {0}")]
    Login(String),
    /// The account has no more room.
    #[error("the account is over its quota: {0}")]
    OverQuota(String),
    /// The mail is too long for the account; the limit where told.
    #[error("the account takes no mail of this size: {0}")]
    TooBig(String, Option<u32>),
    /// The mailbox or account takes no change.
    #[error("the account is read-only: {0}")]
    ReadOnly(String),
    /// UIDVALIDITY is another one than expected.
    #[error("UIDVALIDITY: expected {expected}; found {found}")]
    Renumbered {
        /// The expected one.
        expected: u32,
        /// The account's.
        found: u32,
    },
    /// The account wants fewer requests; not before so many milliseconds.
    #[error("the account asks for patience: {0}")]
    Throttled(String, u64),
    /// The budget of octets a day leaves no room for a request of this urgency; so many milliseconds until room.
    #[error("{0}")]
    Scarce(String, Urgency, u64),
    /// The account refuses for a reason that no code names.
    #[error("the account refuses: {0}")]
    Refused(String),
}
