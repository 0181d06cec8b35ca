//! What the host answers.

use bytes::Bytes;
use vere_sasl::ScramKeys;

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
    Login(LoginOutcome),
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

/// What came of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginOutcome {
    /// It is right.
    Accepted {
        /// The account's own name.
        account: String,
    },
    /// The user does not exist, the password is wrong, or the user may not act as the other.
    Rejected,
    /// It cannot be verified now.
    Unavailable,
}

/// What came of looking up a user's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramLookup {
    /// The user exists.
    Found {
        /// The account's own name.
        account: String,
        /// Its keys.
        keys: ScramKeys,
    },
    /// There is no such user, or it has no such keys; the exchange goes on with fake ones.
    Unknown,
    /// Nobody can say now.
    Unavailable,
}

/// A mailbox in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxEntry {
    /// Its name.
    pub name: String,
    /// Whether there is such a mailbox; what is subscribed may be gone.
    pub exists: bool,
    /// Whether it is subscribed.
    pub subscribed: bool,
    /// Its use, such as `Sent`.
    pub special_use: Option<&'static str>,
}

/// The numbers of a mailbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Messages.
    pub messages: u32,
    /// Messages that no session was told of.
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

/// A mailbox as it is when it is opened.
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
    /// The first one without `\Seen`.
    pub first_unseen: Option<Uid>,
    /// From this UID on messages are recent in this session.
    pub recent_from: Uid,
    /// The keywords in use.
    pub keywords: Vec<std::sync::Arc<str>>,
}

/// What changed in a mailbox.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// The number of the last change.
    pub mod_seq: ModSeq,
    /// The next UID.
    pub uid_next: Uid,
    /// Messages that are new.
    pub added: UidSet,
    /// Messages that are gone.
    pub gone: Gone,
    /// Messages whose flags changed, the new ones among them or not.
    pub changed: Vec<FlagsOf>,
    /// From this UID on the new ones are recent in this session.
    pub recent_from: Uid,
}

/// Which messages are gone.
#[derive(Debug, Clone)]
pub enum Gone {
    /// These, and perhaps some that were never known.
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
    /// The number of its last change.
    pub mod_seq: ModSeq,
}

/// Messages, rising by UID.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    /// Those that are there.
    pub rows: Vec<Row>,
    /// Those asked for and not looked at yet.
    pub rest: UidSet,
    /// Those that are there and are not what was written any more.
    pub damaged: u32,
    /// Those that are there and cannot be read now.
    pub unavailable: u32,
}

/// A message.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its flags.
    pub flags: FlagsOf,
    /// Received when.
    pub date: DateTime,
    /// Octets of all of it.
    pub size: u64,
    /// What `vere_mime::Parsed::encode` wrote when it was delivered, if it was needed.
    pub parsed: Bytes,
    /// As much as was needed: fields of the recipient's own, and the message behind them, or its header
    /// alone where no more is needed.
    pub content: Bytes,
    /// How many octets the own fields have.
    pub own: usize,
    /// Octets of what was needed where it is too long to be in `content`, which is empty then: they are asked for in
    /// pieces.
    pub behind: usize,
    /// How many octets of them are header, the own fields among them.
    pub header: usize,
}

impl Row {
    /// Octets of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>()
            .saturating_add(self.parsed.len())
            .saturating_add(self.content.len())
    }
}

/// What came of changing flags.
#[derive(Debug, Clone, Default)]
pub struct FlagsChanged {
    /// Those that were to be changed, as they are now; those that were so already among them.
    pub rows: Vec<FlagsOf>,
    /// Those of them that were not so before.
    pub changed: UidSet,
    /// Those that had changed since.
    pub modified: UidSet,
}

/// What came of copying, in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// UIDVALIDITY of where they are now.
    pub uid_validity: u32,
    /// Those that were there.
    pub from: UidSet,
    /// What they are now.
    pub to: UidSet,
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// UIDVALIDITY of its mailbox.
    pub uid_validity: u32,
    /// Its UID.
    pub uid: Uid,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The messages.
    pub uids: UidSet,
    /// The highest number of a change among them.
    pub mod_seq: ModSeq,
    /// That of the one with the least UID.
    pub mod_seq_first: ModSeq,
    /// That of the one with the greatest UID.
    pub mod_seq_last: ModSeq,
}

impl Found {
    /// Adds a message behind those that were found, with the number of its last change.
    pub fn push(&mut self, uid: Uid, mod_seq: ModSeq) {
        if self.uids.is_empty() {
            self.mod_seq_first = mod_seq;
        }
        self.mod_seq_last = mod_seq;
        self.mod_seq = self.mod_seq.max(mod_seq);
        self.uids.insert(uid);
    }
}

/// What is used and allowed; without a limit there is none to show.
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
