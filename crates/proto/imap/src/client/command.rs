//! The commands that the client machine gives.

use std::borrow::Cow;

use vere_sasl::client::Credentials;

use crate::Uid;
use crate::date::{DateTime, date_time};
use crate::write::quoted;

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(Vec<u8>),
    Literal(Vec<u8>),
}

/// A command. Names of mailboxes are given as they travel: in modified UTF-7 (`utf7`).
#[derive(Debug, Clone)]
pub enum Command {
    /// CAPABILITY.
    Capability,
    /// STARTTLS.
    StartTls,
    /// `COMPRESS DEFLATE` (RFC 4978).
    Compress,
    /// NAMESPACE (RFC 9051 section 6.3.10).
    Namespace,
    /// LOGIN: where no mechanism of SASL can be used.
    Login(Credentials),
    /// `LIST "" "*"`, with the further facts about mailboxes that the server can return.
    List {
        /// Whether to ask for subscriptions: the server has LIST-EXTENDED (RFC 5258).
        extended: bool,
        /// Whether to ask for special uses as well (RFC 6154).
        special_use: bool,
    },
    /// `LSUB "" "*"` (RFC 3501 section 6.3.9), for servers without LIST-EXTENDED.
    Lsub,
    /// SELECT.
    Select(Vec<u8>),
    /// EXAMINE.
    Examine(Vec<u8>),
    /// CREATE.
    Create {
        /// The name.
        mailbox: Vec<u8>,
        /// The special use, such as `\Sent`, for servers that support it (RFC 6154 section 3).
        special_use: Option<String>,
    },
    /// SUBSCRIBE.
    Subscribe(Vec<u8>),
    /// `LIST "" pattern` (RFC 9051 section 6.3.9).
    ListMatching(Vec<u8>),
    /// DELETE of a mailbox.
    Delete(Vec<u8>),
    /// `STATUS (UIDVALIDITY UIDNEXT MESSAGES)`.
    Status(Vec<u8>),
    /// STATUS with these items, such as `(UIDNEXT)`.
    StatusOf(Vec<u8>, &'static str),
    /// UID FETCH.
    Fetch {
        /// The first UID.
        first: Uid,
        /// The last UID; every UID from the first on, where absent.
        last: Option<Uid>,
        /// The data items of the messages, such as `(FLAGS)`.
        items: Cow<'static, str>,
    },
    /// `UID SEARCH HEADER SUBJECT`: the messages with this text in the subject.
    SearchSubject(Vec<u8>),
    /// `UID SEARCH UID first:last HEADER SUBJECT`: the same among these messages only.
    SearchSubjectWithin(Uid, Uid, Vec<u8>),
    /// `UID SEARCH DELETED`.
    SearchDeleted,
    /// UID STORE of `+FLAGS.SILENT (\Deleted)`; the set as in `7,9:12`.
    StoreDeleted(String),
    /// UID EXPUNGE (RFC 4315): removes the deleted messages of the set only.
    ExpungeSet(String),
    /// EXPUNGE: removes every deleted message.
    Expunge,
    /// GETQUOTAROOT (RFC 9208 section 4.1.2).
    QuotaRoot(Vec<u8>),
    /// ENABLE (RFC 5161), such as `CONDSTORE`.
    Enable(&'static str),
    /// `ID NIL` (RFC 2971).
    Id,
    /// NOOP.
    Noop,
    /// LOGOUT.
    Logout,
}

/// Where and how a message is added by APPEND.
#[derive(Debug, Clone)]
pub struct AppendTo {
    /// The mailbox name as sent on the wire.
    pub mailbox: Vec<u8>,
    /// The flags as written in the command.
    pub flags: Vec<String>,
    /// The time of receipt.
    pub date: Option<DateTime>,
    /// Whether the message holds NUL, accepted by servers with BINARY only (RFC 3516 section 4.4).
    pub binary: bool,
}

impl AppendTo {
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut line = Line::new("APPEND");
        line.name(&self.mailbox);
        line.text(&self.message());
        line.0
    }

    /// The text of the command before the literal of a message.
    pub(super) fn message(&self) -> String {
        let date = self.date.map(|date| format!(" {}", date_time(date)));
        format!(" ({}){} ", self.flags.join(" "), date.unwrap_or_default())
    }
}

impl Command {
    pub(super) fn parts(&self) -> Vec<Part> {
        match self {
            Self::Capability => Line::new("CAPABILITY").0,
            Self::StartTls => Line::new("STARTTLS").0,
            Self::Compress => Line::new("COMPRESS DEFLATE").0,
            Self::Namespace => Line::new("NAMESPACE").0,
            Self::Noop => Line::new("NOOP").0,
            Self::Logout => Line::new("LOGOUT").0,
            Self::Login(credentials) => {
                let mut line = Line::new("LOGIN");
                line.name(credentials.username.as_bytes());
                line.name(credentials.password.expose().as_bytes());
                line.0
            }
            Self::List {
                extended,
                special_use,
            } => {
                let returns = match (extended, special_use) {
                    (false, _) => "",
                    (true, false) => " RETURN (SUBSCRIBED)",
                    (true, true) => " RETURN (SUBSCRIBED SPECIAL-USE)",
                };
                Line::new(&format!("LIST \"\" \"*\"{returns}")).0
            }
            Self::Lsub => Line::new("LSUB \"\" \"*\"").0,
            Self::Select(name) => Line::with_name("SELECT", name),
            Self::Examine(name) => Line::with_name("EXAMINE", name),
            Self::Subscribe(name) => Line::with_name("SUBSCRIBE", name),
            Self::Create {
                mailbox,
                special_use,
            } => {
                let mut line = Line::new("CREATE");
                line.name(mailbox);
                if let Some(special_use) = special_use {
                    line.text(&format!(" (USE ({special_use}))"));
                }
                line.0
            }
            Self::Status(name) => {
                let mut line = Line::new("STATUS");
                line.name(name);
                line.text(" (UIDVALIDITY UIDNEXT MESSAGES)");
                line.0
            }
            Self::ListMatching(pattern) => Line::with_name("LIST \"\"", pattern),
            Self::Delete(name) => Line::with_name("DELETE", name),
            Self::StatusOf(name, items) => {
                let mut line = Line::new("STATUS");
                line.name(name);
                line.text(&format!(" {items}"));
                line.0
            }
            Self::SearchSubject(word) => Line::with_name("UID SEARCH HEADER SUBJECT", word),
            Self::SearchSubjectWithin(first, last, word) => search(*first, *last, word),
            Self::SearchDeleted => Line::new("UID SEARCH DELETED").0,
            Self::StoreDeleted(set) => {
                Line::new(&format!("UID STORE {set} +FLAGS.SILENT (\\Deleted)")).0
            }
            Self::ExpungeSet(set) => Line::new(&format!("UID EXPUNGE {set}")).0,
            Self::Expunge => Line::new("EXPUNGE").0,
            Self::QuotaRoot(name) => Line::with_name("GETQUOTAROOT", name),
            Self::Enable(names) => Line::new(&format!("ENABLE {names}")).0,
            Self::Id => Line::new("ID NIL").0,
            Self::Fetch { first, last, items } => {
                let last = last.map_or("*".to_owned(), |last| last.to_string());
                Line::new(&format!("UID FETCH {first}:{last} {items}")).0
            }
        }
    }
}

fn search(first: Uid, last: Uid, word: &[u8]) -> Vec<Part> {
    Line::with_name(
        &format!("UID SEARCH UID {first}:{last} HEADER SUBJECT"),
        word,
    )
}

/// A command under construction.
struct Line(Vec<Part>);

impl Line {
    fn new(text: &str) -> Self {
        Self(vec![Part::Text(text.as_bytes().to_vec())])
    }

    fn with_name(text: &str, name: &[u8]) -> Vec<Part> {
        let mut line = Self::new(text);
        line.name(name);
        line.0
    }

    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Text(last)) => last.extend_from_slice(text.as_bytes()),
            _ => self.0.push(Part::Text(text.as_bytes().to_vec())),
        }
    }

    /// Appends a blank and a string: quoted where possible.
    fn name(&mut self, name: &[u8]) {
        self.text(" ");
        if name.iter().all(|octet| matches!(octet, b' '..=b'~')) {
            let mut text = Vec::new();
            quoted(&mut text, name);
            self.0.push(Part::Text(text));
        } else {
            self.0.push(Part::Literal(name.to_vec()));
        }
    }
}
