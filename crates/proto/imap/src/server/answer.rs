//! The answers of the host.

use bytes::Bytes;
use vere_sasl::server::{PasswordOutcome, ScramLookup};

use crate::date::DateTime;
use crate::flags::Flags;
use crate::set::UidSet;
use crate::{ModSeq, Uid};

use super::question::MailboxKey;
use super::refusal::Refusal;

/// The answer to a [`Question`](super::Question).
///
/// An answer that does not fit the question is taken as [`Refusal::Unavailable`].
#[derive(Debug)]
pub enum Answer {
    /// To [`Question::Password`](super::Question::Password).
    Login(PasswordOutcome),
    /// To [`Question::ScramUser`](super::Question::ScramUser).
    ScramUser(ScramLookup),
    /// To [`Question::Mailboxes`](super::Question::Mailboxes); in any order.
    Mailboxes(Result<Vec<MailboxEntry>, Refusal>),
    /// To [`Question::Status`](super::Question::Status).
    Status(Result<Status, Refusal>),
    /// To [`Question::Change`](super::Question::Change) and [`Question::Expunge`](super::Question::Expunge).
    Done(Result<(), Refusal>),
    /// To [`Question::Open`](super::Question::Open).
    Opened(Result<Box<Opened>, Refusal>),
    /// To [`Question::Changes`](super::Question::Changes).
    Changes(Result<Changes, Refusal>),
    /// To [`Question::Fetch`](super::Question::Fetch).
    Messages(Result<Messages, Refusal>),
    /// To [`Question::Piece`](super::Question::Piece): all of what was asked for.
    Piece(Result<Bytes, Refusal>),
    /// To [`Question::Store`](super::Question::Store).
    Flags(Result<FlagsChanged, Refusal>),
    /// To [`Question::Copy`](super::Question::Copy).
    Copied(Result<Copied, Refusal>),
    /// To [`Question::Append`](super::Question::Append).
    Appended(Result<Appended, Refusal>),
    /// To [`Question::Search`](super::Question::Search).
    Found(Result<Found, Refusal>),
    /// To [`Question::Quota`](super::Question::Quota).
    Quota(Result<Quota, Refusal>),
}

/// A mailbox in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxEntry {
    /// Its name.
    pub name: String,
    /// Whether the mailbox exists; a subscription may outlive the mailbox.
    pub exists: bool,
    /// Whether the mailbox is subscribed.
    pub subscribed: bool,
    /// The special use, such as `Sent`.
    pub special_use: Option<&'static str>,
}

/// The numbers of a mailbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Messages.
    pub messages: u32,
    /// Messages not yet announced to any session.
    pub recent: u32,
    /// The next UID.
    pub uid_next: Uid,
    /// UIDVALIDITY.
    pub uid_validity: u32,
    /// Messages without `\Seen`.
    pub unseen: u32,
    /// Messages with `\Deleted`.
    pub deleted: u32,
    /// Octets of the messages with `\Deleted`, where they were asked for.
    pub deleted_octets: u64,
    /// Octets of all messages.
    pub size: u64,
    /// The number of the last change.
    pub mod_seq: ModSeq,
}

/// The state of a mailbox when opened.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The name for further questions.
    pub mailbox: MailboxKey,
    /// UIDVALIDITY.
    pub uid_validity: u32,
    /// The next UID.
    pub uid_next: Uid,
    /// The number of the last change.
    pub mod_seq: ModSeq,
    /// Its messages.
    pub uids: UidSet,
    /// The first UID without `\Seen`.
    pub first_unseen: Option<Uid>,
    /// The least UID that is recent in this session.
    pub recent_from: Uid,
    /// The keywords in use.
    pub keywords: Vec<std::sync::Arc<str>>,
}

/// The changes of a mailbox.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The number of the last change.
    pub mod_seq: ModSeq,
    /// The next UID.
    pub uid_next: Uid,
    /// New messages.
    pub added: UidSet,
    /// Expunged messages.
    pub gone: Gone,
    /// Messages with changed flags; new messages may be included.
    pub changed: Vec<FlagsOf>,
    /// The least UID among the new messages that is recent in this session.
    pub recent_from: Uid,
}

/// The expunged messages.
#[derive(Debug, Clone)]
pub enum Gone {
    /// Exactly these UIDs, and perhaps UIDs that the client never knew.
    These(UidSet),
    /// All but these: the history does not reach back so far.
    AllBut(UidSet),
}

impl Default for Gone {
    fn default() -> Self {
        Self::These(UidSet::new())
    }
}

/// The flags of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagsOf {
    /// The message.
    pub uid: Uid,
    /// Its flags.
    pub flags: Flags,
    /// The mod-sequence of the last change.
    pub mod_seq: ModSeq,
}

/// Messages, rising by UID.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// The rows of existing messages.
    pub rows: Vec<Row>,
    /// Requested messages not read yet.
    pub rest: UidSet,
    /// Number of existing messages whose stored octets are damaged.
    pub damaged: u32,
    /// Number of existing messages that cannot be read now.
    pub unavailable: u32,
}

/// A message.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its flags.
    pub flags: FlagsOf,
    /// Received when.
    pub date: DateTime,
    /// Size of the whole message in octets.
    pub size: u64,
    /// The output of `vere_mime::Parsed::encode` at delivery, if requested.
    pub parsed: Bytes,
    /// The requested content: fields added for the recipient, followed by the message, or by the header alone where
    /// the query needs no more.
    pub content: Bytes,
    /// How many octets the own fields have.
    pub own: usize,
    /// Octets of requested content too long for `content`, which is empty then: the machine requests the octets in
    /// pieces.
    pub behind: usize,
    /// Octets of the header, fields added for the recipient included.
    pub header: usize,
}

impl Row {
    /// Octets of memory that the row occupies.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>()
            .saturating_add(self.parsed.len())
            .saturating_add(self.content.len())
    }
}

/// The result of changing flags.
#[derive(Debug, Clone, Default)]
pub struct FlagsChanged {
    /// The selected messages with their present flags, including messages whose flags did not change.
    pub rows: Vec<FlagsOf>,
    /// The messages whose flags changed.
    pub changed: UidSet,
    /// The messages changed after the given mod-sequence, and therefore left alone.
    pub modified: UidSet,
}

/// The result of copying, source and target in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// UIDVALIDITY of the target mailbox.
    pub uid_validity: u32,
    /// The UIDs of the existing source messages.
    pub from: UidSet,
    /// The UIDs of the copies.
    pub to: UidSet,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// UIDVALIDITY of the mailbox.
    pub uid_validity: u32,
    /// Its UID.
    pub uid: Uid,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The messages.
    pub uids: UidSet,
    /// The highest mod-sequence of the found messages.
    pub mod_seq: ModSeq,
    /// The mod-sequence of the message with the least UID.
    pub mod_seq_first: ModSeq,
    /// The mod-sequence of the message with the greatest UID.
    pub mod_seq_last: ModSeq,
}

impl Found {
    /// Appends a found message, with the mod-sequence of the last change.
    pub fn push(&mut self, uid: Uid, mod_seq: ModSeq) {
        if self.uids.is_empty() {
            self.mod_seq_first = mod_seq;
        }
        self.mod_seq_last = mod_seq;
        self.mod_seq = self.mod_seq.max(mod_seq);
        self.uids.insert(uid);
    }
}

/// Usage and limits of an account; an absent limit is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quota {
    /// Octets used.
    pub octets: u64,
    /// Octets allowed.
    pub octets_max: Option<u64>,
    /// Messages there are.
    pub messages: u64,
    /// Messages allowed.
    pub messages_max: Option<u64>,
}
