//! FETCH and STORE (RFC 9051 sections 6.4.5 and 6.4.6, RFC 7162, RFC 3516).

use crate::ModSeq;
use crate::flags::Flag;
use crate::limits::FETCH_ITEMS_MAX;
use crate::set::SequenceSet;

use super::cursor::{Cursor, Result, expected};
use super::{Command, CommandError, flag, mod_seq};

/// FETCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchCommand {
    /// Whether the set is of UIDs.
    pub uid: bool,
    /// Which messages.
    pub set: SequenceSet,
    /// The data items, without duplicates.
    pub items: Vec<FetchItem>,
    /// Restricts the answer to messages changed since this mod-sequence (RFC 7162 section 3.1.4.1).
    pub changed_since: Option<ModSeq>,
    /// Whether expunged UIDs are reported too (RFC 7162 section 3.2.6).
    pub vanished: bool,
}

/// An item of FETCH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchItem {
    /// `UID`.
    Uid,
    /// `FLAGS`.
    Flags,
    /// `INTERNALDATE`.
    InternalDate,
    /// `RFC822.SIZE`.
    Size,
    /// `ENVELOPE`.
    Envelope,
    /// `BODY` without a section.
    Body,
    /// `BODYSTRUCTURE`.
    BodyStructure,
    /// `MODSEQ`.
    ModSeq,
    /// `BODY[...]`, `BODY.PEEK[...]`.
    Section {
        /// Which part.
        section: Section,
        /// The range of octets.
        partial: Option<Partial>,
        /// Whether the message stays unseen.
        peek: bool,
    },
    /// `RFC822`, `RFC822.HEADER` and `RFC822.TEXT`, in rev1 only.
    Rfc822(Part),
    /// `BINARY[...]`, `BINARY.PEEK[...]`.
    Binary {
        /// The number of the part; the message itself when empty.
        path: Vec<u32>,
        /// The range of octets.
        partial: Option<Partial>,
        /// Whether the message stays unseen.
        peek: bool,
    },
    /// `BINARY.SIZE[...]`.
    BinarySize(Vec<u32>),
}

impl FetchItem {
    /// Whether fetching the item sets `\Seen`.
    #[must_use]
    pub fn sets_seen(&self) -> bool {
        match self {
            Self::Section { peek, .. } | Self::Binary { peek, .. } => !peek,
            Self::Rfc822(part) => *part != Part::Header,
            _ => false,
        }
    }
}

/// A section of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The number of the body part; the message itself when empty.
    pub path: Vec<u32>,
    /// What of it.
    pub part: Part,
}

/// The part of a message or body part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    All,
    /// `HEADER`.
    Header,
    /// `HEADER.FIELDS (...)`.
    Fields(Vec<String>),
    /// `HEADER.FIELDS.NOT (...)`.
    FieldsNot(Vec<String>),
    /// `TEXT`.
    Text,
    /// `MIME`.
    Mime,
}

/// `<first.count>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The first octet.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// STORE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreCommand {
    /// Whether the set is of UIDs.
    pub uid: bool,
    /// Which messages.
    pub set: SequenceSet,
    /// Restricts the change to messages unchanged since this mod-sequence (RFC 7162 section 3.1.3).
    pub unchanged_since: Option<ModSeq>,
    /// The change of the flags.
    pub action: StoreAction,
    /// Whether no answer is wanted.
    pub silent: bool,
    /// The flags.
    pub flags: Vec<Flag>,
}

/// The kinds of flag change in STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreAction {
    /// `FLAGS`.
    Replace,
    /// `+FLAGS`.
    Add,
    /// `-FLAGS`.
    Remove,
}

/// `fetch = "FETCH" SP sequence-set SP ("ALL" / "FULL" / "FAST" / fetch-att / "(" ... ")")
/// [SP fetch-modifiers]`.
pub(super) fn fetch(cursor: &mut Cursor<'_>, uid: bool) -> Result<Command> {
    let set = cursor.sequence_set()?;
    cursor.space()?;
    let items = match macro_items(cursor) {
        Some(items) => items,
        None if cursor.peek() == Some(b'(') => items(cursor)?,
        None => vec![item(cursor)?],
    };
    let mut command = FetchCommand {
        uid,
        set,
        items,
        changed_since: None,
        vanished: false,
    };
    if cursor.eat(b' ') {
        cursor.list(false, |cursor| {
            if cursor.eat_word("CHANGEDSINCE ") {
                command.changed_since = Some(mod_seq(cursor, false)?);
            } else if cursor.eat_word("VANISHED") {
                command.vanished = true;
            } else {
                return expected("CHANGEDSINCE or VANISHED");
            }
            Ok(())
        })?;
    }
    if command.vanished && (!uid || command.changed_since.is_none()) {
        return expected("UID FETCH with CHANGEDSINCE for VANISHED");
    }
    Ok(Command::Fetch(command))
}

fn macro_items(cursor: &mut Cursor<'_>) -> Option<Vec<FetchItem>> {
    let mut items = vec![FetchItem::Flags, FetchItem::InternalDate, FetchItem::Size];
    if cursor.eat_word("FAST") {
        return Some(items);
    }
    items.push(FetchItem::Envelope);
    if cursor.eat_word("ALL") {
        return Some(items);
    }
    items.push(FetchItem::Body);
    cursor.eat_word("FULL").then_some(items)
}

/// Reads different items up to the limit: a repeated item is answered once.
fn items(cursor: &mut Cursor<'_>) -> Result<Vec<FetchItem>> {
    let mut items = Vec::new();
    cursor.list(false, |cursor| {
        let item = item(cursor)?;
        if items.contains(&item) {
            return Ok(());
        }
        if items.len() >= FETCH_ITEMS_MAX {
            return Err(CommandError::TooMany("more than 100 items to fetch"));
        }
        items.push(item);
        Ok(())
    })?;
    Ok(items)
}

fn item(cursor: &mut Cursor<'_>) -> Result<FetchItem> {
    const WHAT: &str = "an item to fetch";
    let name = cursor.take_while(|octet| octet.is_ascii_alphanumeric() || octet == b'.');
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    let has_section = cursor.peek() == Some(b'[');
    Ok(match name.as_str() {
        "UID" => FetchItem::Uid,
        "FLAGS" => FetchItem::Flags,
        "INTERNALDATE" => FetchItem::InternalDate,
        "RFC822.SIZE" => FetchItem::Size,
        "ENVELOPE" => FetchItem::Envelope,
        "BODYSTRUCTURE" => FetchItem::BodyStructure,
        "MODSEQ" => FetchItem::ModSeq,
        "RFC822" => FetchItem::Rfc822(Part::All),
        "RFC822.HEADER" => FetchItem::Rfc822(Part::Header),
        "RFC822.TEXT" => FetchItem::Rfc822(Part::Text),
        "BODY" if !has_section => FetchItem::Body,
        "BODY" | "BODY.PEEK" if has_section => FetchItem::Section {
            section: section(cursor)?,
            partial: partial(cursor)?,
            peek: name.ends_with("PEEK"),
        },
        "BINARY" | "BINARY.PEEK" if has_section => FetchItem::Binary {
            path: binary_path(cursor)?,
            partial: partial(cursor)?,
            peek: name.ends_with("PEEK"),
        },
        "BINARY.SIZE" if has_section => FetchItem::BinarySize(binary_path(cursor)?),
        _ => return expected(WHAT),
    })
}

/// `section = "[" [section-spec] "]"`.
fn section(cursor: &mut Cursor<'_>) -> Result<Section> {
    cursor.expect(b'[', "a section")?;
    let mut path = Vec::new();
    while cursor.peek().is_some_and(|octet| octet.is_ascii_digit()) {
        path.push(cursor.nz_number()?);
        if !cursor.eat(b'.') {
            cursor.expect(b']', "the end of a section")?;
            let part = Part::All;
            return Ok(Section { path, part });
        }
    }
    let part = if path.is_empty() && cursor.peek() == Some(b']') {
        Part::All
    } else if cursor.eat_word("HEADER.FIELDS.NOT ") {
        Part::FieldsNot(fields(cursor)?)
    } else if cursor.eat_word("HEADER.FIELDS ") {
        Part::Fields(fields(cursor)?)
    } else if cursor.eat_word("HEADER") {
        Part::Header
    } else if cursor.eat_word("TEXT") {
        Part::Text
    } else if !path.is_empty() && cursor.eat_word("MIME") {
        Part::Mime
    } else {
        return expected("a section");
    };
    cursor.expect(b']', "the end of a section")?;
    Ok(Section { path, part })
}

fn fields(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    cursor.list(false, |cursor| {
        let name = cursor.astring()?;
        Ok(String::from_utf8_lossy(&name).into_owned())
    })
}

/// `section-binary = "[" [section-part] "]"`.
fn binary_path(cursor: &mut Cursor<'_>) -> Result<Vec<u32>> {
    match section(cursor)? {
        Section {
            path,
            part: Part::All,
        } => Ok(path),
        _ => expected("the number of a part"),
    }
}

/// `partial = "<" number64 "." nz-number64 ">"`.
fn partial(cursor: &mut Cursor<'_>) -> Result<Option<Partial>> {
    if !cursor.eat(b'<') {
        return Ok(None);
    }
    let first = cursor.number32()?;
    cursor.expect(b'.', "a count of octets")?;
    let count = cursor.nz_number()?;
    cursor.expect(b'>', "the end of a range of octets")?;
    Ok(Some(Partial { first, count }))
}

/// `store = "STORE" SP sequence-set [SP "(" "UNCHANGEDSINCE" SP mod-sequence-valzer ")"] SP
/// store-att-flags`.
pub(super) fn store(cursor: &mut Cursor<'_>, uid: bool) -> Result<Command> {
    let set = cursor.sequence_set()?;
    cursor.space()?;
    let unchanged_since = if cursor.eat_word("(UNCHANGEDSINCE ") {
        let since = mod_seq(cursor, true)?;
        cursor.expect(b')', "the end of the modifiers")?;
        cursor.space()?;
        Some(since)
    } else {
        None
    };
    let action = match cursor.peek() {
        Some(b'+') => StoreAction::Add,
        Some(b'-') => StoreAction::Remove,
        _ => StoreAction::Replace,
    };
    if action != StoreAction::Replace {
        cursor.take_while(|octet| b"+-".contains(&octet));
    }
    if !cursor.eat_word("FLAGS") {
        return expected("FLAGS");
    }
    let silent = cursor.eat_word(".SILENT");
    cursor.space()?;
    let flags = if cursor.peek() == Some(b'(') {
        cursor.list(true, flag)?
    } else {
        let mut flags = vec![flag(cursor)?];
        while cursor.eat(b' ') {
            flags.push(flag(cursor)?);
        }
        flags
    };
    Ok(Command::Store(StoreCommand {
        uid,
        set,
        unchanged_since,
        action,
        silent,
        flags,
    }))
}
