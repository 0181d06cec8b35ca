//! What the machine wants from its host.

use std::sync::Arc;

use bytes::Bytes;
use vere_sasl::server::PasswordAttempt;

use crate::command::{SearchKey, StoreAction};
use crate::date::DateTime;
use crate::flags::Flag;
use crate::set::UidSet;
use crate::{ModSeq, Uid};

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
    /// Is the password right? Answered by [`Answer::Login`](super::Answer::Login).
    Password(PasswordAttempt),
    /// What are the keys of this user? Answered by [`Answer::ScramUser`](super::Answer::ScramUser).
    ScramUser {
        /// The name, prepared by SASLprep.
        username: String,
    },
    /// Which mailboxes are there? Answered by [`Answer::Mailboxes`](super::Answer::Mailboxes).
    Mailboxes,
    /// How many messages, and so on? Answered by [`Answer::Status`](super::Answer::Status).
    Status {
        /// The mailbox.
        mailbox: String,
        /// Whether the octets of messages with `\Deleted` are wanted, for which messages have to be gone over.
        deleted_octets: bool,
    },
    /// Change the list of mailboxes. Answered by [`Answer::Done`](super::Answer::Done).
    Change(MailboxChange),
    /// Open a mailbox. Answered by [`Answer::Opened`](super::Answer::Opened); from then on the host tells
    /// [`Server::mailbox_changed`](super::Server::mailbox_changed).
    Open {
        /// Its name.
        mailbox: String,
        /// Whether nothing in it shall change, not even `\Recent`.
        read_only: bool,
    },
    /// What changed? Answered by [`Answer::Changes`](super::Answer::Changes).
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
    /// Give messages, rising by UID. Answered by [`Answer::Messages`](super::Answer::Messages).
    Fetch(FetchQuery),
    /// Give a piece of a message whose row came without its octets ([`Row::behind`](super::Row::behind)). Asked once the client has read
    /// what came before. Answered by [`Answer::Piece`](super::Answer::Piece).
    Piece(PieceQuery),
    /// Change flags. Answered by [`Answer::Flags`](super::Answer::Flags).
    Store(StoreQuery),
    /// Remove messages with `\Deleted`. Answered by [`Answer::Done`](super::Answer::Done).
    Expunge {
        /// The mailbox.
        mailbox: MailboxKey,
        /// Only among these.
        uids: Option<UidSet>,
    },
    /// Copy messages, all or none. Answered by [`Answer::Copied`](super::Answer::Copied).
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
    /// Is the message safe? Answered by [`Answer::Appended`](super::Answer::Appended), after which the client believes that it is.
    Append(Box<AppendQuery>),
    /// Which messages are these? Answered by [`Answer::Found`](super::Answer::Found).
    Search {
        /// The mailbox.
        mailbox: MailboxKey,
        /// What is looked for, without message numbers.
        key: SearchKey,
        /// Messages that are recent in this session.
        recent: UidSet,
    },
    /// How much is used and allowed? Answered by [`Answer::Quota`](super::Answer::Quota).
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
    /// What is longer than so many octets may be given without them ([`Row::behind`](super::Row::behind)), as the last row; never where an
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
    pub date: Option<DateTime>,
    /// The message.
    pub message: Bytes,
}
