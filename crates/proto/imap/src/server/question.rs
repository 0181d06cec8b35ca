//! The questions of the machine to the host.

use std::sync::Arc;

use bytes::Bytes;
use vere_sasl::server::PasswordAttempt;

use crate::command::{SearchKey, StoreAction};
use crate::date::DateTime;
use crate::flags::Flag;
use crate::set::UidSet;
use crate::{ModSeq, Uid};

/// The next step of the host.
#[derive(Debug)]
#[must_use]
pub enum Step {
    /// Read from the client and call [`Server::input`](super::Server::input).
    NeedInput,
    /// Write [`Server::output`](super::Server::output) and call [`Server::sent`](super::Server::sent).
    Send,
    /// Find the answer and call [`Server::answer`](super::Server::answer).
    Ask(Question),
    /// The answer to the last question is missing, and the session waits for the answer.
    NeedAnswer,
    /// Do the TLS handshake, throwing away whatever was read before it, and call
    /// [`Server::tls_started`](super::Server::tls_started).
    StartTls,
    /// Close the connection.
    Close,
}

/// An open mailbox, under a key chosen by the host.
pub type MailboxKey = u64;

/// A question to the host, about the account that has logged in. At most one question is open at a time.
#[derive(Debug)]
pub enum Question {
    /// Is the password right? Answered by [`Answer::Login`](super::Answer::Login).
    Password(PasswordAttempt),
    /// Looks up the SCRAM keys of a user. Answered by [`Answer::ScramUser`](super::Answer::ScramUser).
    ScramUser {
        /// The name, prepared by SASLprep.
        username: String,
    },
    /// Lists the mailboxes. Answered by [`Answer::Mailboxes`](super::Answer::Mailboxes).
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
        /// Whether opening changes no state, not even `\Recent`.
        read_only: bool,
    },
    /// What changed? Answered by [`Answer::Changes`](super::Answer::Changes).
    Changes {
        /// The mailbox.
        mailbox: MailboxKey,
        /// The client knows every change up to this mod-sequence.
        since: ModSeq,
        /// Messages from here on are new.
        uid_next: Uid,
        /// Whether the query changes no state, not even `\Recent`.
        read_only: bool,
    },
    /// Give messages, rising by UID. Answered by [`Answer::Messages`](super::Answer::Messages).
    Fetch(FetchQuery),
    /// Reads a piece of a message whose row came without octets ([`Row::behind`](super::Row::behind)). The machine
    /// asks once the client has read the output before. Answered by [`Answer::Piece`](super::Answer::Piece).
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
    /// Copies all messages, or no message. Answered by [`Answer::Copied`](super::Answer::Copied).
    Copy {
        /// The mailbox.
        mailbox: MailboxKey,
        /// Which.
        uids: UidSet,
        /// Where to.
        target: String,
        /// Whether the messages leave the source mailbox.
        remove: bool,
    },
    /// Stores a message. Answered by [`Answer::Appended`](super::Answer::Appended) once the message is safe on disk:
    /// the client relies on that answer.
    Append(Box<AppendQuery>),
    /// Finds the messages of a search. Answered by [`Answer::Found`](super::Answer::Found).
    Search {
        /// The mailbox.
        mailbox: MailboxKey,
        /// The search key, without message numbers.
        key: SearchKey,
        /// Messages with `\Recent` in this session.
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
        /// The special use, such as `Sent`; the first of several.
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
        /// Whether to subscribe or to unsubscribe.
        subscribed: bool,
    },
}

/// The messages and octets to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchQuery {
    /// The mailbox.
    pub mailbox: MailboxKey,
    /// The requested UIDs; the host may answer the first UIDs only.
    pub uids: UidSet,
    /// Restricts the answer to messages changed since this mod-sequence.
    pub changed_since: Option<ModSeq>,
    /// What of them.
    pub need: Need,
    /// Whether the row needs the parsed structure too; always true for [`Need::Parsed`].
    pub parsed: bool,
    /// Set if the query needs only these header fields, without the parsed structure: the row's content is then the
    /// fields as written, in their order, and an empty line ([`crate::message::header_fields`]).
    pub fields: Option<Arc<[String]>>,
    /// Octets of content after which the host stops; the answer has at least one message.
    pub octets_max: usize,
    /// Size from which a message may be given without octets ([`Row::behind`](super::Row::behind)), as the last row;
    /// absent if an item has to process the octets.
    pub large_from: Option<usize>,
}

/// The octets of a message to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceQuery {
    /// The mailbox.
    pub mailbox: MailboxKey,
    /// The message, whose row was the last row given.
    pub uid: Uid,
    /// The first octet.
    pub first: usize,
    /// How many.
    pub octets: usize,
}

/// The need for message octets beside flags, date and size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing.
    #[default]
    Nothing,
    /// The parsed structure.
    Parsed,
    /// The header, without octets of the body.
    Header,
    /// All of it.
    Whole,
}

/// A change of flags.
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
    /// Restricts the change to messages unchanged since this mod-sequence.
    pub unchanged_since: Option<ModSeq>,
}

/// A message to keep.
#[derive(Debug, Clone)]
pub struct AppendQuery {
    /// Where to.
    pub mailbox: String,
    /// With which flags.
    pub flags: Vec<Flag>,
    /// Time of receipt; the present time if absent.
    pub date: Option<DateTime>,
    /// The message.
    pub message: Bytes,
}
