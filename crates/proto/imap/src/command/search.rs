//! SEARCH (RFC 9051 section 6.4.4, RFC 4731, RFC 5182, RFC 7162, RFC 5032).

use crate::ModSeq;
use crate::date::{self, Day};
use crate::flags::{Flag, SystemFlag};
use crate::limits::SEARCH_DEPTH_MAX;
use crate::set::{SequenceSet, UidSet};

use super::cursor::{Cursor, Result, expected};
use super::{Command, CommandError, flag, mod_seq};

/// SEARCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCommand {
    /// Whether UIDs are the answer.
    pub uid: bool,
    /// `RETURN (...)`, if present.
    pub returns: Option<SearchReturn>,
    /// The search key.
    pub key: SearchKey,
}

/// What SEARCH answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchReturn {
    /// `MIN`.
    pub min: bool,
    /// `MAX`.
    pub max: bool,
    /// `ALL`.
    pub all: bool,
    /// `COUNT`.
    pub count: bool,
    /// `SAVE`.
    pub save: bool,
}

/// A search key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchKey {
    /// Every message.
    All,
    /// All of these.
    And(Vec<Self>),
    /// One of these.
    Or(Box<(Self, Self)>),
    /// Not this.
    Not(Box<Self>),
    /// The flag is set.
    Flag(Flag),
    /// The message has `\Recent`: this session is the first to see the message.
    Recent,
    /// The message number is in the set.
    Sequence(SequenceSet),
    /// The UID is in the set.
    Uid(SequenceSet),
    /// The message is in the set: the machine converts `Sequence` and `Uid` to this key before asking
    /// the host.
    Messages(UidSet),
    /// A header field of this name holds the text; with an empty text, the field exists.
    Header {
        /// The field.
        name: String,
        /// The text.
        text: String,
    },
    /// The body holds the text.
    Body(String),
    /// Header or body hold the text.
    Text(String),
    /// Received before the day.
    Before(Day),
    /// Received on the day.
    On(Day),
    /// Received on the day or later.
    Since(Day),
    /// The Date field is before the day.
    SentBefore(Day),
    /// The Date field is on the day.
    SentOn(Day),
    /// The Date field is on the day or later.
    SentSince(Day),
    /// Received within the last N seconds.
    Younger(u32),
    /// Received more than N seconds ago.
    Older(u32),
    /// More octets.
    Larger(u64),
    /// Fewer octets.
    Smaller(u64),
    /// The mod-sequence is at least this number.
    ModSeq(ModSeq),
}

impl SearchKey {
    /// Counts the keys that may need to read messages.
    #[must_use]
    pub fn texts(&self) -> usize {
        match self {
            Self::And(keys) => keys.iter().map(Self::texts).fold(0, usize::saturating_add),
            Self::Or(keys) => keys.0.texts().saturating_add(keys.1.texts()),
            Self::Not(key) => key.texts(),
            Self::Header { .. }
            | Self::Body(_)
            | Self::Text(_)
            | Self::SentBefore(_)
            | Self::SentOn(_)
            | Self::SentSince(_) => 1,
            _ => 0,
        }
    }

    /// Whether a key of the wanted kind occurs anywhere in the tree.
    #[must_use]
    pub fn any(&self, wanted: &impl Fn(&Self) -> bool) -> bool {
        if wanted(self) {
            return true;
        }
        match self {
            Self::And(keys) => keys.iter().any(|key| key.any(wanted)),
            Self::Or(keys) => keys.0.any(wanted) || keys.1.any(wanted),
            Self::Not(key) => key.any(wanted),
            _ => false,
        }
    }
}

/// `search = "SEARCH" [search-return-opts] SP search-program`.
pub(super) fn search(cursor: &mut Cursor<'_>, uid: bool) -> Result<Command> {
    let returns = if cursor.eat_word("RETURN ") {
        let returns = returns(cursor)?;
        cursor.space()?;
        Some(returns)
    } else {
        None
    };
    if cursor.eat_word("CHARSET ") {
        let charset = cursor.astring()?;
        if !charset.eq_ignore_ascii_case(b"UTF-8") && !charset.eq_ignore_ascii_case(b"US-ASCII") {
            return Err(CommandError::Charset);
        }
        cursor.space()?;
    }
    let mut keys = vec![key(cursor, 0)?];
    while cursor.eat(b' ') {
        keys.push(key(cursor, 0)?);
    }
    let key = match keys.pop() {
        Some(only) if keys.is_empty() => only,
        Some(last) => {
            keys.push(last);
            SearchKey::And(keys)
        }
        None => SearchKey::All,
    };
    Ok(Command::Search(Box::new(SearchCommand {
        uid,
        returns,
        key,
    })))
}

fn returns(cursor: &mut Cursor<'_>) -> Result<SearchReturn> {
    let mut options = SearchReturn::default();
    let names = cursor.list(true, |cursor| {
        match cursor
            .atom("a result option")?
            .to_ascii_uppercase()
            .as_str()
        {
            "MIN" => options.min = true,
            "MAX" => options.max = true,
            "ALL" => options.all = true,
            "COUNT" => options.count = true,
            "SAVE" => options.save = true,
            _ => return expected("MIN, MAX, ALL, COUNT or SAVE"),
        }
        Ok(())
    })?;
    options.all |= names.is_empty();
    Ok(options)
}

fn key(cursor: &mut Cursor<'_>, depth: usize) -> Result<SearchKey> {
    if depth > SEARCH_DEPTH_MAX {
        return Err(CommandError::TooDeep);
    }
    let deeper = depth.saturating_add(1);
    match cursor.peek() {
        Some(b'(') => {
            return Ok(SearchKey::And(
                cursor.list(false, |cursor| key(cursor, deeper))?,
            ));
        }
        Some(b'0'..=b'9' | b'*' | b'$') => {
            return Ok(SearchKey::Sequence(cursor.sequence_set()?));
        }
        _ => {}
    }
    let name = cursor.atom("a search key")?.to_ascii_uppercase();
    if let Some(key) = flag_key(&name) {
        return Ok(key);
    }
    cursor.space()?;
    match name.as_str() {
        "NOT" => Ok(SearchKey::Not(Box::new(key(cursor, deeper)?))),
        "OR" => {
            let one = key(cursor, deeper)?;
            cursor.space()?;
            Ok(SearchKey::Or(Box::new((one, key(cursor, deeper)?))))
        }
        _ => with_value(&name, cursor),
    }
}

/// The keys without arguments.
fn flag_key(name: &str) -> Option<SearchKey> {
    let has = |flag| SearchKey::Flag(Flag::System(flag));
    let lacks = |flag| SearchKey::Not(Box::new(has(flag)));
    Some(match name {
        "ALL" => SearchKey::All,
        "ANSWERED" => has(SystemFlag::Answered),
        "DELETED" => has(SystemFlag::Deleted),
        "DRAFT" => has(SystemFlag::Draft),
        "FLAGGED" => has(SystemFlag::Flagged),
        "SEEN" => has(SystemFlag::Seen),
        "UNANSWERED" => lacks(SystemFlag::Answered),
        "UNDELETED" => lacks(SystemFlag::Deleted),
        "UNDRAFT" => lacks(SystemFlag::Draft),
        "UNFLAGGED" => lacks(SystemFlag::Flagged),
        "UNSEEN" => lacks(SystemFlag::Seen),
        "RECENT" => SearchKey::Recent,
        "OLD" => SearchKey::Not(Box::new(SearchKey::Recent)),
        "NEW" => SearchKey::And(vec![SearchKey::Recent, lacks(SystemFlag::Seen)]),
        _ => return None,
    })
}

fn with_value(name: &str, cursor: &mut Cursor<'_>) -> Result<SearchKey> {
    Ok(match name {
        "FROM" | "TO" | "CC" | "BCC" | "SUBJECT" => SearchKey::Header {
            name: name.to_owned(),
            text: cursor.text()?,
        },
        "HEADER" => {
            let name = cursor.text()?;
            cursor.space()?;
            SearchKey::Header {
                name,
                text: cursor.text()?,
            }
        }
        "BODY" => SearchKey::Body(cursor.text()?),
        "TEXT" => SearchKey::Text(cursor.text()?),
        "BEFORE" => SearchKey::Before(day(cursor)?),
        "ON" => SearchKey::On(day(cursor)?),
        "SINCE" => SearchKey::Since(day(cursor)?),
        "SENTBEFORE" => SearchKey::SentBefore(day(cursor)?),
        "SENTON" => SearchKey::SentOn(day(cursor)?),
        "SENTSINCE" => SearchKey::SentSince(day(cursor)?),
        "YOUNGER" => SearchKey::Younger(cursor.nz_number()?),
        "OLDER" => SearchKey::Older(cursor.nz_number()?),
        "LARGER" => SearchKey::Larger(cursor.number()?),
        "SMALLER" => SearchKey::Smaller(cursor.number()?),
        "KEYWORD" => SearchKey::Flag(keyword(cursor)?),
        "UNKEYWORD" => SearchKey::Not(Box::new(SearchKey::Flag(keyword(cursor)?))),
        "UID" => SearchKey::Uid(cursor.sequence_set()?),
        "MODSEQ" => SearchKey::ModSeq(changed(cursor)?),
        _ => return expected("a search key"),
    })
}

fn keyword(cursor: &mut Cursor<'_>) -> Result<Flag> {
    match flag(cursor)? {
        keyword @ Flag::Keyword(_) => Ok(keyword),
        Flag::System(_) => expected("a keyword"),
    }
}

/// `MODSEQ [SP entry-name SP entry-type-req] SP mod-sequence-valzer`; there is one number for all flags.
fn changed(cursor: &mut Cursor<'_>) -> Result<ModSeq> {
    if cursor.peek() == Some(b'"') {
        cursor.string()?;
        cursor.space()?;
        cursor.atom("priv, shared or all")?;
        cursor.space()?;
    }
    mod_seq(cursor, true)
}

/// `date = date-text / DQUOTE date-text DQUOTE`, `date-text = date-day "-" date-month "-" date-year`.
fn day(cursor: &mut Cursor<'_>) -> Result<Day> {
    const WHAT: &str = "a date";
    let text = cursor.astring()?;
    let mut parts = text.splitn(3, |octet| *octet == b'-');
    let number = |part: Option<&[u8]>, digits: usize| -> Option<u16> {
        let part = part.filter(|part| !part.is_empty() && part.len() <= digits)?;
        part.iter().all(u8::is_ascii_digit).then_some(())?;
        std::str::from_utf8(part).ok()?.parse().ok()
    };
    let read = (|| {
        let day = number(parts.next(), 2)?;
        let month = date::month(parts.next()?)?;
        let year = number(parts.next().filter(|year| year.len() == 4), 4)?;
        Day::from_date(year, month, u8::try_from(day).ok()?)
    })();
    read.map_or_else(|| expected(WHAT), Ok)
}
