//! What the machine wants from its host, and what the host answers.

use std::sync::Arc;

use bytes::Bytes;
use vere_sasl::ScramKeys;
use vere_sasl::server::PasswordAttempt;

use crate::command::{SearchKey, StoreAction};
use crate::date::Moment;
use crate::flags::{Flag, Flags};
use crate::set::UidSet;
use crate::{ModSeq, Uid};

use super::refusal::Refusal;

/// What the host must do next.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Read from the client and call [`Server::input`](super::Server::input).
    NeedInput,
    /// Write [`Server::output`](super::Server::output) and call [`Server::sent`](super::Server::sent).
    Send,
    /// Find the answer and call [`Server::answer`](super::Server::answer).
    Ask(Question),
    /// The answer to the last question is missing; nothing goes on before it.
    NeedAnswer,
    /// Do the TLS handshake, throwing away whatever was read before it, and call
    /// [`Server::tls_started`](super::Server::tls_started).
    StartTls,
    /// Close the connection.
    Close,
}

/// An open mailbox, by the name that the host gave it.
pub type MailboxKey = u64;

/// A question to the host, about the account that has logged in. At most one is open at a time.
#[derive(Debug)]
pub enum Question {
    /// Is the password right? Answered by [`Answer::Login`].
    Password(PasswordAttempt),
    /// What are the keys of this user? Answered by [`Answer::ScramUser`].
    ScramUser {
        /// The name, prepared by SASLprep.
        username: String,
    },
    /// Which mailboxes are there? Answered by [`Answer::Mailboxes`].
    Mailboxes,
    /// How many messages, and so on? Answered by [`Answer::Status`].
    Status {
        /// The mailbox.
        mailbox: String,
    },
    /// Change the list of mailboxes. Answered by [`Answer::Done`].
    Change(MailboxChange),
    /// Open a mailbox. Answered by [`Answer::Opened`]; from then on the host tells
    /// [`Server::mailbox_changed`](super::Server::mailbox_changed).
    Open {
        /// Its name.
        mailbox: String,
        /// Whether nothing in it shall change, not even `\Recent`.
        read_only: bool,
    },
    /// What changed? Answered by [`Answer::Changes`].
    Changes {
        /// The mailbox.
        mailbox: MailboxKey,
        /// What changed up to here is known.
        since: ModSeq,
        /// Messages from here on are new.
        uid_next: Uid,
        /// Whether nothing in it shall change, not even `\Recent`.
        read_only: bool,
    },
    /// Give messages, rising by UID. Answered by [`Answer::Messages`].
    Fetch(FetchQuery),
    /// Give a piece of a message whose row came without its octets ([`Row::behind`]). Asked once the client has read
    /// what came before. Answered by [`Answer::Piece`].
    Piece(PieceQuery),
    /// Change flags. Answered by [`Answer::Flags`].
    Store(StoreQuery),
    /// Remove messages with `\Deleted`. Answered by [`Answer::Done`].
    Expunge {
        /// The mailbox.
        mailbox: MailboxKey,
        /// Only among these.
        uids: Option<UidSet>,
    },
    /// Copy messages, all or none. Answered by [`Answer::Copied`].
    Copy {
        /// The mailbox.
        mailbox: MailboxKey,
        /// Which.
        uids: UidSet,
        /// Where to.
        target: String,
        /// Whether they leave where they were.
        remove: bool,
    },
    /// Is the message safe? Answered by [`Answer::Appended`], after which the client believes that it is.
    Append(Box<AppendQuery>),
    /// Which messages are these? Answered by [`Answer::Found`].
    Search {
        /// The mailbox.
        mailbox: MailboxKey,
        /// What is looked for, without message numbers.
        key: SearchKey,
        /// Messages that are recent in this session.
        recent: UidSet,
    },
    /// How much is used and allowed? Answered by [`Answer::Quota`].
    Quota,
}

/// A change of the list of mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailboxChange {
    /// CREATE.
    Create {
        /// The name.
        mailbox: String,
        /// Its use, such as `Sent`; of several the first.
        special_use: Option<String>,
    },
    /// DELETE.
    Delete(String),
    /// RENAME.
    Rename {
        /// The old name.
        from: String,
        /// The new one.
        to: String,
    },
    /// SUBSCRIBE and UNSUBSCRIBE.
    Subscribe {
        /// The name.
        mailbox: String,
        /// Whether it is subscribed from now on.
        subscribed: bool,
    },
}

/// Which messages to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchQuery {
    /// The mailbox.
    pub mailbox: MailboxKey,
    /// Which messages; the host may give the first ones only.
    pub uids: UidSet,
    /// Only those changed since.
    pub changed_since: Option<ModSeq>,
    /// What of them.
    pub need: Need,
    /// Whether what the parser found in them is needed too; it always is where nothing else is.
    pub parsed: bool,
    /// When of the header no fields but these are needed, and nothing that the parser found: then a
    /// row's content is the fields of these names as they were written, in their order, and an empty line
    /// ([`crate::message::header_fields`]).
    pub fields: Option<Arc<[String]>>,
    /// Octets of content after which to stop; at least one message is given.
    pub octets_max: usize,
    /// What is longer than so many octets may be given without them ([`Row::behind`]), as the last row; never where an
    /// item is made of them.
    pub large_from: Option<usize>,
}

/// Which octets of a message to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceQuery {
    /// The mailbox.
    pub mailbox: MailboxKey,
    /// The message, whose row was the last that was given.
    pub uid: Uid,
    /// The first octet.
    pub first: usize,
    /// How many.
    pub octets: usize,
}

/// What of a message is needed beside its flags, date and size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing.
    #[default]
    Nothing,
    /// What the parser found in it.
    Parsed,
    /// The header, no octet behind it.
    Header,
    /// All of it.
    Whole,
}

/// Which flags to change.
#[derive(Debug, Clone)]
pub struct StoreQuery {
    /// The mailbox.
    pub mailbox: MailboxKey,
    /// Which messages.
    pub uids: UidSet,
    /// How.
    pub action: StoreAction,
    /// The flags.
    pub flags: Vec<Flag>,
    /// Only those not changed since.
    pub unchanged_since: Option<ModSeq>,
}

/// A message to keep.
#[derive(Debug, Clone)]
pub struct AppendQuery {
    /// Where to.
    pub mailbox: String,
    /// With which flags.
    pub flags: Vec<Flag>,
    /// Received when; now where nothing is said.
    pub date: Option<Moment>,
    /// The message.
    pub message: Bytes,
}

/// The answer to a [`Question`].
///
/// An answer that does not fit the question is taken as [`Refusal::Unavailable`].
#[derive(Debug)]
pub enum Answer {
    /// To [`Question::Password`].
    Login(LoginOutcome),
    /// To [`Question::ScramUser`].
    ScramUser(ScramLookup),
    /// To [`Question::Mailboxes`]; in any order.
    Mailboxes(Result<Vec<MailboxEntry>, Refusal>),
    /// To [`Question::Status`].
    Status(Result<Status, Refusal>),
    /// To [`Question::Change`] and [`Question::Expunge`].
    Done(Result<(), Refusal>),
    /// To [`Question::Open`].
    Opened(Result<Box<Opened>, Refusal>),
    /// To [`Question::Changes`].
    Changes(Result<Changes, Refusal>),
    /// To [`Question::Fetch`].
    Messages(Result<Messages, Refusal>),
    /// To [`Question::Piece`]: all of what was asked for.
    Piece(Result<Bytes, Refusal>),
    /// To [`Question::Store`].
    Flags(Result<FlagsChanged, Refusal>),
    /// To [`Question::Copy`].
    Copied(Result<Copied, Refusal>),
    /// To [`Question::Append`].
    Appended(Result<Appended, Refusal>),
    /// To [`Question::Search`].
    Found(Result<Found, Refusal>),
    /// To [`Question::Quota`].
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
    pub date: Moment,
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
