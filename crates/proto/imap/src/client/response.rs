//! What servers say (RFC 9051 section 7), as far as a client of ours asks.

use crate::date::{DateTime, parse_date_time};
use crate::{ModSeq, Uid};

use super::ProtocolError;
use super::reader::Line;
use super::value::{Cursor, Value};

/// How a command ended, or what a server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// `OK`.
    Ok,
    /// `NO`: not done.
    No,
    /// `BAD`: not understood.
    Bad,
    /// `BYE`: the connection ends.
    Bye,
    /// `PREAUTH`: no login is needed.
    PreAuth,
}

impl Condition {
    fn from_word(word: &[u8]) -> Option<Self> {
        let all: [(&[u8], Self); 5] = [
            (b"OK", Self::Ok),
            (b"NO", Self::No),
            (b"BAD", Self::Bad),
            (b"BYE", Self::Bye),
            (b"PREAUTH", Self::PreAuth),
        ];
        all.into_iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word))
            .map(|(_, condition)| condition)
    }
}

/// A status condition with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The condition.
    pub condition: Condition,
    /// The reason for programs.
    pub code: Option<Code>,
    /// The reason for people.
    pub text: String,
}

impl Status {
    /// Whether the condition is `OK`.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.condition == Condition::Ok
    }
}

/// A response code (RFC 9051 section 7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// `APPENDUID` (RFC 4315): the new UIDs of the messages, in the order of the APPEND.
    AppendUid {
        /// UIDVALIDITY of the mailbox.
        uid_validity: u32,
        /// The UIDs, from one to another; as many as the server likes, so never to be counted through.
        uids: Vec<(Uid, Uid)>,
    },
    /// `UIDVALIDITY`.
    UidValidity(u32),
    /// `UIDNEXT`.
    UidNext(Uid),
    /// `CAPABILITY`; upper case.
    Capability(Vec<String>),
    /// Any other response code, as written: among them `TRYCREATE`, `OVERQUOTA`, `TOOBIG`, `LIMIT`, `READ-ONLY`,
    /// `UNAVAILABLE` and `INUSE`.
    Other(String),
}

impl Code {
    /// Whether the response code has this name and no value.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        matches!(self, Self::Other(text) if text.eq_ignore_ascii_case(name))
    }

    /// The values of the response code of this name, as written; empty where the code has none.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<&str> {
        let Self::Other(text) = self else {
            return None;
        };
        let (own, values) = text.split_once(' ').unwrap_or((text, ""));
        own.eq_ignore_ascii_case(name).then_some(values)
    }
}

/// A mailbox in an answer to LIST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The attributes of the mailbox, such as `\Noselect` and `\Sent`.
    pub attributes: Vec<String>,
    /// The hierarchy separator of the name.
    pub delimiter: Option<char>,
    /// The mailbox name as sent on the wire.
    pub name: Vec<u8>,
}

impl Listed {
    /// Whether the mailbox has this attribute, such as `\Noselect`.
    #[must_use]
    pub fn has(&self, attribute: &str) -> bool {
        self.attributes
            .iter()
            .any(|own| own.eq_ignore_ascii_case(attribute))
    }
}

/// Where an account's own mailboxes are (RFC 9051 section 6.3.10).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The prefix of every mailbox name except INBOX, as sent on the wire, delimiter included.
    pub prefix: Vec<u8>,
    /// The hierarchy separator.
    pub delimiter: Option<char>,
}

/// The data items of a message from a FETCH response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The message number in the mailbox.
    pub number: u32,
    /// Its UID.
    pub uid: Option<Uid>,
    /// The flags as written.
    pub flags: Option<Vec<String>>,
    /// The time of receipt.
    pub date: Option<DateTime>,
    /// Its size.
    pub size: Option<u64>,
    /// The mod-sequence of the last change.
    pub mod_seq: Option<ModSeq>,
    /// The octets of `BODY[]`: kept here, or passed on earlier.
    pub body: Option<Value>,
    /// The other parts of the message, in the order of the response.
    pub sections: Vec<Section>,
}

/// A part of a message in a FETCH response, such as `BODY[TEXT]<0>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The name without the offset, in upper case: `BODY[TEXT]`.
    pub name: String,
    /// The offset of a partial FETCH.
    pub origin: Option<u32>,
    /// The octets: kept here, or passed on earlier.
    pub value: Value,
}

impl Section {
    /// Reads the name of a data item; `None` for an item that is no part of a message.
    fn parse(name: &[u8], value: Value) -> Option<Self> {
        let name = std::str::from_utf8(name).ok()?;
        if !(name.starts_with("BODY[") || name.starts_with("BINARY[")) {
            return None;
        }
        let (name, behind) = name.split_once(']')?;
        let origin = behind
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'));
        Some(Self {
            name: format!("{name}]"),
            origin: origin.and_then(|digits| digits.parse().ok()),
            value,
        })
    }
}

/// The limits of a quota root (RFC 9208 section 5.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quota {
    /// The resources by name in upper case, with usage and limit; `STORAGE` counts units of 1,024 octets.
    pub resources: Vec<(String, u64, u64)>,
}

/// A response that does not end a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A condition.
    Status(Status),
    /// The capabilities of the server, in upper case.
    Capability(Vec<String>),
    /// A mailbox.
    Listed(Listed),
    /// The first personal namespace of the account, if any.
    Namespace(Option<Namespace>),
    /// Numbers of a mailbox.
    MailboxStatus {
        /// The mailbox name as sent on the wire.
        name: Vec<u8>,
        /// The numbers by status item, in upper case.
        numbers: Vec<(String, u64)>,
    },
    /// How many messages there are.
    Exists(u32),
    /// A message was removed; the numbers of later messages fall by 1.
    Expunge(u32),
    /// Something about a message.
    Fetched(Box<Fetched>),
    /// A quota root of a mailbox.
    Quota(Quota),
    /// The messages found by a search.
    Found(Vec<u32>),
    /// A response of no use to the client machine.
    Other,
}

/// A whole response line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The end of the command with this tag.
    Tagged(Vec<u8>, Status),
    /// `*`
    Untagged(Response),
    /// `+`
    Continue(Vec<u8>),
}

impl Said {
    /// # Errors
    /// [`ProtocolError::Malformed`] when a response of use to the client machine has bad syntax.
    pub(super) fn parse(line: &Line) -> Result<Self, ProtocolError> {
        let text = &line.text;
        if let Some(rest) = text.strip_prefix(b"+") {
            return Ok(Self::Continue(rest.trim_ascii().to_vec()));
        }
        let mut cursor = Cursor::new(line);
        let tag = cursor.word();
        cursor.blanks();
        if tag == b"*" {
            return untagged(&mut cursor).map(Self::Untagged);
        }
        let condition = Condition::from_word(cursor.word())
            .filter(|condition| matches!(condition, Condition::Ok | Condition::No | Condition::Bad))
            .ok_or(ProtocolError::Malformed("tagged response"))?;
        Ok(Self::Tagged(tag.to_vec(), status(condition, &mut cursor)))
    }
}

fn untagged(cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let word = cursor.word();
    if let Some(condition) = Condition::from_word(word) {
        return Ok(Response::Status(status(condition, cursor)));
    }
    if word.first().is_some_and(u8::is_ascii_digit) {
        return numbered(word, cursor);
    }
    match word.to_ascii_uppercase().as_slice() {
        b"CAPABILITY" => Ok(Response::Capability(capabilities(&cursor.remainder()))),
        b"LIST" | b"LSUB" => listed(cursor),
        b"NAMESPACE" => namespace(cursor),
        b"STATUS" => mailbox_status(cursor),
        b"QUOTA" => quota(cursor),
        b"SEARCH" => {
            let text = cursor.remainder();
            // Behind the numbers there may be (MODSEQ ...).
            let text = text.split('(').next().unwrap_or_default();
            let numbers = text.split_ascii_whitespace().map(str::parse);
            let numbers: Result<Vec<u32>, _> = numbers.collect();
            numbers
                .map(Response::Found)
                .map_err(|_| ProtocolError::Malformed("SEARCH"))
        }
        _ => Ok(Response::Other),
    }
}

fn status(condition: Condition, cursor: &mut Cursor<'_>) -> Status {
    cursor.blanks();
    let code = match cursor.peek() {
        Some(b'[') => Some(code(cursor)),
        _ => None,
    };
    Status {
        condition,
        code,
        text: cursor.remainder().trim_start().to_owned(),
    }
}

fn code(cursor: &mut Cursor<'_>) -> Code {
    // A code may hold brackets itself; the word ends behind the last.
    let word = String::from_utf8_lossy(cursor.word()).into_owned();
    let inside = word.strip_prefix('[').unwrap_or(&word);
    let inside = inside.strip_suffix(']').unwrap_or(inside);
    let mut parts = inside.split_ascii_whitespace();
    let name = parts.next().unwrap_or_default().to_ascii_uppercase();
    let last = |part: Option<&str>| part?.rsplit([',', ':']).next()?.parse().ok();
    let known = match name.as_str() {
        "APPENDUID" => match (last(parts.next()), parts.next().and_then(ranges)) {
            (Some(uid_validity), Some(uids)) => Some(Code::AppendUid { uid_validity, uids }),
            _ => None,
        },
        "UIDVALIDITY" => last(parts.next()).map(Code::UidValidity),
        "UIDNEXT" => last(parts.next()).map(Code::UidNext),
        "CAPABILITY" => Some(Code::Capability(
            parts.map(str::to_ascii_uppercase).collect(),
        )),
        _ => None,
    };
    known.unwrap_or_else(|| Code::Other(inside.to_owned()))
}

/// UIDs as in `7,9:12`.
fn ranges(text: &str) -> Option<Vec<(Uid, Uid)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    text.split(',').map(range).collect()
}

fn capabilities(text: &str) -> Vec<String> {
    text.split_ascii_whitespace()
        .map(str::to_ascii_uppercase)
        .collect()
}

fn numbered(word: &[u8], cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let number = std::str::from_utf8(word)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .ok_or(ProtocolError::Malformed("number"))?;
    cursor.blanks();
    match cursor.word().to_ascii_uppercase().as_slice() {
        b"EXISTS" => Ok(Response::Exists(number)),
        b"EXPUNGE" => Ok(Response::Expunge(number)),
        b"FETCH" => fetched(number, cursor),
        _ => Ok(Response::Other),
    }
}

fn fetched(number: u32, cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let wrong = ProtocolError::Malformed("FETCH");
    cursor.blanks();
    if !cursor.pass(b'(') {
        return Err(wrong);
    }
    let mut fetched = Fetched {
        number,
        ..Fetched::default()
    };
    loop {
        cursor.blanks();
        if cursor.pass(b')') {
            return Ok(Response::Fetched(Box::new(fetched)));
        }
        let name = cursor.word().to_ascii_uppercase();
        if name.is_empty() {
            return Err(wrong);
        }
        let value = cursor.value()?;
        match name.as_slice() {
            b"UID" => fetched.uid = value.number(),
            b"FLAGS" => {
                let flags = value.list().ok_or(wrong)?.iter();
                fetched.flags = Some(
                    flags
                        .filter_map(|flag| flag.text().map(str::to_owned))
                        .collect(),
                );
            }
            b"INTERNALDATE" => fetched.date = value.octets().and_then(parse_date_time),
            b"RFC822.SIZE" => fetched.size = value.number(),
            b"MODSEQ" => {
                fetched.mod_seq = value
                    .list()
                    .and_then(|list| list.first())
                    .and_then(Value::number);
            }
            b"BODY[]" | b"BINARY[]" | b"RFC822" => fetched.body = Some(value),
            _ => fetched.sections.extend(Section::parse(&name, value)),
        }
    }
}

fn quota(cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let wrong = ProtocolError::Malformed("QUOTA");
    // The name of the root.
    cursor.value()?;
    cursor.blanks();
    if cursor.peek().is_none() {
        // Courier says so of a root without limits, against the grammar.
        return Ok(Response::Quota(Quota::default()));
    }
    let values = cursor.value()?;
    let (resources, _) = values.list().ok_or(wrong)?.as_chunks::<3>();
    let resources = resources.iter().filter_map(|[name, usage, limit]| {
        Some((
            name.text()?.to_ascii_uppercase(),
            usage.number()?,
            limit.number()?,
        ))
    });
    Ok(Response::Quota(Quota {
        resources: resources.collect(),
    }))
}

fn listed(cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let wrong = ProtocolError::Malformed("LIST");
    let attributes = cursor.value()?;
    let attributes = attributes.list().ok_or(wrong)?.iter();
    let attributes = attributes
        .filter_map(|name| name.text().map(str::to_owned))
        .collect();
    let delimiter = cursor.value()?;
    let delimiter = delimiter.text().and_then(|text| text.chars().next());
    cursor.blanks();
    // A mailbox name may hold unmatched brackets, so the word reader does not fit.
    let name = match cursor.peek() {
        Some(b'"' | b'{') => cursor.value()?.octets().ok_or(wrong)?.to_vec(),
        _ => {
            let rest = cursor.remainder();
            rest.split(' ').next().ok_or(wrong)?.as_bytes().to_vec()
        }
    };
    Ok(Response::Listed(Listed {
        attributes,
        delimiter,
        name,
    }))
}

fn namespace(cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let wrong = ProtocolError::Malformed("NAMESPACE");
    let own = cursor.value()?;
    let Some(first) = own.list().and_then(<[Value]>::first) else {
        return Ok(Response::Namespace(None));
    };
    let [prefix, delimiter, ..] = first.list().ok_or(wrong)? else {
        return Err(wrong);
    };
    Ok(Response::Namespace(Some(Namespace {
        prefix: prefix.octets().ok_or(wrong)?.to_vec(),
        delimiter: delimiter.text().and_then(|text| text.chars().next()),
    })))
}

fn mailbox_status(cursor: &mut Cursor<'_>) -> Result<Response, ProtocolError> {
    let wrong = ProtocolError::Malformed("STATUS");
    let name = cursor.value()?.octets().ok_or(wrong)?.to_vec();
    let values = cursor.value()?;
    let (pairs, _) = values.list().ok_or(wrong)?.as_chunks::<2>();
    let numbers = pairs
        .iter()
        .filter_map(|[name, number]| Some((name.text()?.to_ascii_uppercase(), number.number()?)));
    Ok(Response::MailboxStatus {
        name,
        numbers: numbers.collect(),
    })
}
