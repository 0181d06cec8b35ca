//! The commands of clients: a whole command, literals included, as a value.
//!
//! ```
//! use vere_imap::command::{Command, parse};
//!
//! let parsed = parse(b"a1 SELECT inbox", false);
//! assert_eq!(parsed.tag.as_deref(), Some("a1"));
//! assert!(matches!(parsed.command, Ok(Command::Select(select)) if select.mailbox == "INBOX"));
//! ```

mod append;
mod cursor;
mod fetch;
mod list;
mod mailbox;
mod search;
mod session;

use vere_units::Secret;

use crate::ModSeq;
use crate::flags::Flag;
use crate::set::SequenceSet;

use cursor::{Cursor, Result, expected};

pub use append::AppendCommand;
pub use fetch::{FetchCommand, FetchItem, Part, Partial, Section, StoreAction, StoreCommand};
pub use list::{ListCommand, ListReturn, ListSelection};
pub use mailbox::{Qresync, SelectCommand, StatusItem};
pub use search::{SearchCommand, SearchKey, SearchReturn};

/// A command without the tag.
#[derive(Debug)]
pub enum Command {
    /// CAPABILITY.
    Capability,
    /// NOOP.
    Noop,
    /// LOGOUT.
    Logout,
    /// ID (RFC 2971), with the fields sent by the client.
    Id(Vec<(String, Option<String>)>),
    /// STARTTLS.
    StartTls,
    /// AUTHENTICATE.
    Authenticate {
        /// The mechanism's name.
        mechanism: String,
        /// The initial response in base64, or `=` for an empty one (RFC 4959).
        initial: Option<Secret<String>>,
    },
    /// LOGIN.
    Login {
        /// Who.
        user: String,
        /// The password.
        password: Secret<String>,
    },
    /// ENABLE (RFC 5161).
    Enable(Vec<String>),
    /// SELECT and EXAMINE.
    Select(SelectCommand),
    /// CREATE, with the special use of the mailbox (RFC 6154).
    Create {
        /// The name; a separator at its end has been taken off.
        mailbox: String,
        /// As `\Sent`, without the backslash.
        special_use: Vec<String>,
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
    /// SUBSCRIBE.
    Subscribe(String),
    /// UNSUBSCRIBE.
    Unsubscribe(String),
    /// LIST.
    List(ListCommand),
    /// LSUB.
    Lsub {
        /// The reference name before the pattern.
        reference: String,
        /// The pattern.
        pattern: String,
    },
    /// NAMESPACE.
    Namespace,
    /// STATUS.
    Status {
        /// Of which mailbox.
        mailbox: String,
        /// What of it.
        items: Vec<StatusItem>,
    },
    /// APPEND.
    Append(AppendCommand),
    /// IDLE.
    Idle,
    /// CHECK, in rev1 only.
    Check,
    /// CLOSE.
    Close,
    /// UNSELECT.
    Unselect,
    /// EXPUNGE, and UID EXPUNGE with the set of UIDs (RFC 4315).
    Expunge(Option<SequenceSet>),
    /// SEARCH and UID SEARCH.
    Search(Box<SearchCommand>),
    /// FETCH and UID FETCH.
    Fetch(FetchCommand),
    /// STORE and UID STORE.
    Store(StoreCommand),
    /// COPY, MOVE (RFC 6851) and the UID forms.
    Copy {
        /// Whether the set is of UIDs.
        uid: bool,
        /// Which messages.
        set: SequenceSet,
        /// Where to.
        mailbox: String,
        /// Whether the messages leave the source mailbox (MOVE).
        remove: bool,
    },
    /// GETQUOTA (RFC 9208).
    GetQuota(String),
    /// GETQUOTAROOT.
    GetQuotaRoot(String),
    /// SETQUOTA, forbidden to every client.
    SetQuota,
}

/// The result of parsing a command.
#[derive(Debug)]
pub struct Parsed {
    /// The tag, if present.
    pub tag: Option<String>,
    /// The command, or the reason for rejecting the text.
    pub command: std::result::Result<Command, CommandError>,
}

/// Why octets are no command; always the peer's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The command name is unknown.
    #[error("unknown command")]
    Unknown,
    /// Something else should stand there.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A mailbox name exceeds the length limit.
    #[error("mailbox name too long")]
    NameTooLong,
    /// A mailbox name looks like modified UTF-7 and is not: no mailbox can have it.
    #[error("mailbox name is not modified UTF-7")]
    NameEncoding,
    /// The number of these elements exceeds the limit.
    #[error("{0}")]
    TooMany(&'static str),
    /// The keys of a search are nested too deeply.
    #[error("search keys nested too deeply")]
    TooDeep,
    /// The charset of a search is not supported.
    #[error("unknown charset")]
    Charset,
    /// Another protocol is spoken.
    #[error("this is IMAP")]
    OtherProtocol,
}

/// Parses a command without the CRLF at the end; literals stand in the text as sent.
///
/// `utf8` says whether mailbox names are UTF-8 (the client has enabled IMAP4rev2) and not modified
/// UTF-7.
#[must_use]
pub fn parse(text: &[u8], utf8: bool) -> Parsed {
    let mut cursor = Cursor::new(text, utf8);
    if is_other_protocol(text) {
        return Parsed {
            tag: None,
            command: Err(CommandError::OtherProtocol),
        };
    }
    let Some(tag) = tag(&mut cursor) else {
        return Parsed {
            tag: None,
            command: expected("a tag"),
        };
    };
    Parsed {
        tag: Some(tag),
        command: command(&mut cursor),
    }
}

/// The tag at the beginning of a line, and the text behind the tag.
#[must_use]
pub fn beginning(text: &[u8]) -> (Option<String>, &[u8]) {
    let mut cursor = Cursor::new(text, false);
    let tag = tag(&mut cursor);
    (tag, cursor.take_while(cursor::is_atom_char))
}

/// `tag = 1*<any ASTRING-CHAR except "+">`, and the space behind the tag.
fn tag(cursor: &mut Cursor<'_>) -> Option<String> {
    let mut ahead = cursor.clone();
    let tag =
        ahead.take_while(|octet| (cursor::is_atom_char(octet) || octet == b']') && octet != b'+');
    if tag.is_empty() || !ahead.eat(b' ') {
        return None;
    }
    *cursor = ahead;
    String::from_utf8(tag.to_vec()).ok()
}

/// Browsers can be made to speak to any port.
fn is_other_protocol(text: &[u8]) -> bool {
    [&b"GET /"[..], b"POST /", b"Host:", b"User-Agent:"]
        .iter()
        .any(|start| text.starts_with(start))
}

fn command(cursor: &mut Cursor<'_>) -> Result<Command> {
    let word = cursor.atom("a command")?.to_ascii_uppercase();
    let command = match word.as_str() {
        "CAPABILITY" => Command::Capability,
        "NOOP" => Command::Noop,
        "LOGOUT" => Command::Logout,
        "STARTTLS" => Command::StartTls,
        "NAMESPACE" => Command::Namespace,
        "IDLE" => Command::Idle,
        "CHECK" => Command::Check,
        "CLOSE" => Command::Close,
        "UNSELECT" => Command::Unselect,
        "EXPUNGE" => Command::Expunge(None),
        _ => {
            if !is_known(&word) {
                return Err(CommandError::Unknown);
            }
            cursor.space()?;
            with_arguments(&word, cursor)?
        }
    };
    cursor.end()?;
    Ok(command)
}

fn is_known(word: &str) -> bool {
    const WITH_ARGUMENTS: &[&str] = &[
        "ID",
        "AUTHENTICATE",
        "LOGIN",
        "ENABLE",
        "SELECT",
        "EXAMINE",
        "CREATE",
        "DELETE",
        "RENAME",
        "SUBSCRIBE",
        "UNSUBSCRIBE",
        "LIST",
        "LSUB",
        "STATUS",
        "APPEND",
        "SEARCH",
        "FETCH",
        "STORE",
        "COPY",
        "MOVE",
        "UID",
        "GETQUOTA",
        "GETQUOTAROOT",
        "SETQUOTA",
    ];
    WITH_ARGUMENTS.contains(&word)
}

fn with_arguments(word: &str, cursor: &mut Cursor<'_>) -> Result<Command> {
    match word {
        "ID" => session::id(cursor),
        "AUTHENTICATE" => session::authenticate(cursor),
        "LOGIN" => session::login(cursor),
        "ENABLE" => session::enable(cursor),
        "SELECT" => mailbox::select(cursor, false),
        "EXAMINE" => mailbox::select(cursor, true),
        "CREATE" => mailbox::create(cursor),
        "DELETE" => Ok(Command::Delete(cursor.mailbox()?)),
        "RENAME" => mailbox::rename(cursor),
        "SUBSCRIBE" => Ok(Command::Subscribe(cursor.mailbox()?)),
        "UNSUBSCRIBE" => Ok(Command::Unsubscribe(cursor.mailbox()?)),
        "LIST" => list::list(cursor),
        "LSUB" => list::lsub(cursor),
        "STATUS" => mailbox::status(cursor),
        "APPEND" => append::append(cursor),
        "SEARCH" => search::search(cursor, false),
        "FETCH" => fetch::fetch(cursor, false),
        "STORE" => fetch::store(cursor, false),
        "COPY" => copy(cursor, false, false),
        "MOVE" => copy(cursor, false, true),
        "UID" => with_uids(cursor),
        "GETQUOTA" => Ok(Command::GetQuota(cursor.text()?)),
        "GETQUOTAROOT" => Ok(Command::GetQuotaRoot(cursor.mailbox()?)),
        "SETQUOTA" => {
            cursor.take_while(|_| true);
            Ok(Command::SetQuota)
        }
        _ => Err(CommandError::Unknown),
    }
}

/// `uid = "UID" SP (copy / move / fetch / search / store / uid-expunge)`.
fn with_uids(cursor: &mut Cursor<'_>) -> Result<Command> {
    let word = cursor.atom("a command after UID")?.to_ascii_uppercase();
    cursor.space()?;
    match word.as_str() {
        "FETCH" => fetch::fetch(cursor, true),
        "STORE" => fetch::store(cursor, true),
        "SEARCH" => search::search(cursor, true),
        "COPY" => copy(cursor, true, false),
        "MOVE" => copy(cursor, true, true),
        "EXPUNGE" => Ok(Command::Expunge(Some(cursor.sequence_set()?))),
        _ => Err(CommandError::Unknown),
    }
}

/// `copy = "COPY" SP sequence-set SP mailbox`.
fn copy(cursor: &mut Cursor<'_>, uid: bool, remove: bool) -> Result<Command> {
    let set = cursor.sequence_set()?;
    cursor.space()?;
    Ok(Command::Copy {
        uid,
        set,
        mailbox: cursor.mailbox()?,
        remove,
    })
}

/// `flag`, without `\Recent`, which clients cannot set.
fn flag(cursor: &mut Cursor<'_>) -> Result<Flag> {
    use crate::flags::SystemFlag;
    if cursor.eat(b'\\') {
        let name = cursor.atom("a flag")?;
        return SystemFlag::from_name(name)
            .map(Flag::System)
            .map_or_else(|| expected("a system flag"), Ok);
    }
    let word = cursor.atom("a flag")?;
    if word.len() > crate::limits::KEYWORD_OCTETS_MAX {
        return expected("a shorter keyword");
    }
    Ok(Flag::Keyword(word.into()))
}

/// `mod-sequence-value` or, where zero may stand, `mod-sequence-valzer` (RFC 7162 section 7).
fn mod_seq(cursor: &mut Cursor<'_>, may_be_zero: bool) -> Result<ModSeq> {
    match cursor.number()? {
        0 if !may_be_zero => expected("a mod-sequence that is not zero"),
        number => Ok(number),
    }
}

#[cfg(test)]
mod tests;
