//! Commands about mailboxes as a whole.

use crate::ModSeq;
use crate::set::{SequenceSet, UidSet};

use super::cursor::{Cursor, Result, expected};
use super::{Command, mod_seq};

/// SELECT or EXAMINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectCommand {
    /// The mailbox.
    pub mailbox: String,
    /// EXAMINE.
    pub read_only: bool,
    /// `CONDSTORE` (RFC 7162 section 3.1.8).
    pub condstore: bool,
    /// `QRESYNC` (RFC 7162 section 3.2.5).
    pub qresync: Option<Qresync>,
}

/// The state of a mailbox in the client's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qresync {
    /// The UIDVALIDITY in the cache.
    pub uid_validity: u32,
    /// The mod-sequence up to which the cache is complete.
    pub mod_seq: ModSeq,
    /// The UIDs in the cache; all UIDs if absent.
    pub known: Option<UidSet>,
}

/// An item of STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusItem {
    /// `MESSAGES`.
    Messages,
    /// `RECENT`, in rev1 only.
    Recent,
    /// `UIDNEXT`.
    UidNext,
    /// `UIDVALIDITY`.
    UidValidity,
    /// `UNSEEN`.
    Unseen,
    /// `DELETED`.
    Deleted,
    /// `DELETED-STORAGE` (RFC 9208).
    DeletedStorage,
    /// `SIZE` (RFC 8438).
    Size,
    /// `HIGHESTMODSEQ` (RFC 7162).
    HighestModSeq,
    /// `APPENDLIMIT` (RFC 7889).
    AppendLimit,
}

impl StatusItem {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Messages, "MESSAGES"),
        (Self::Recent, "RECENT"),
        (Self::UidNext, "UIDNEXT"),
        (Self::UidValidity, "UIDVALIDITY"),
        (Self::Unseen, "UNSEEN"),
        (Self::Deleted, "DELETED"),
        (Self::DeletedStorage, "DELETED-STORAGE"),
        (Self::Size, "SIZE"),
        (Self::HighestModSeq, "HIGHESTMODSEQ"),
        (Self::AppendLimit, "APPENDLIMIT"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(item, _)| *item == self);
        found.map_or("", |(_, name)| *name)
    }
}

/// `select = "SELECT" SP mailbox [SP "(" select-param *(SP select-param) ")"]`.
pub(super) fn select(cursor: &mut Cursor<'_>, read_only: bool) -> Result<Command> {
    let mut command = SelectCommand {
        mailbox: cursor.mailbox()?,
        read_only,
        condstore: false,
        qresync: None,
    };
    if cursor.eat(b' ') {
        cursor.list(false, |cursor| {
            if cursor.eat_word("CONDSTORE") {
                command.condstore = true;
            } else if cursor.eat_word("QRESYNC") {
                cursor.space()?;
                command.qresync = Some(qresync(cursor)?);
            } else {
                return expected("CONDSTORE or QRESYNC");
            }
            Ok(())
        })?;
    }
    Ok(Command::Select(command))
}

/// `"(" uidvalidity SP mod-sequence-value [SP known-uids] [SP seq-match-data] ")"`.
fn qresync(cursor: &mut Cursor<'_>) -> Result<Qresync> {
    cursor.expect(b'(', "what the client knows")?;
    let uid_validity = cursor.nz_number()?;
    cursor.space()?;
    let mut qresync = Qresync {
        uid_validity,
        mod_seq: mod_seq(cursor, false)?,
        known: None,
    };
    while cursor.eat(b' ') {
        if cursor.eat(b'(') {
            // Message numbers with their UIDs; the UIDs suffice (RFC 7162 section 3.2.5.2).
            known_set(cursor)?;
            cursor.space()?;
            known_set(cursor)?;
            cursor.expect(b')', "the end of the list of known messages")?;
        } else {
            qresync.known = Some(known_set(cursor)?);
        }
    }
    cursor.expect(b')', "the end of the list of known messages")?;
    Ok(qresync)
}

/// A set without `*`.
fn known_set(cursor: &mut Cursor<'_>) -> Result<UidSet> {
    use crate::set::SeqNumber::Largest;
    match cursor.sequence_set()? {
        SequenceSet::Ranges(ranges)
            if !ranges
                .iter()
                .any(|(first, last)| *first == Largest || *last == Largest) =>
        {
            Ok(SequenceSet::Ranges(ranges).resolve(0))
        }
        _ => expected("a set without *"),
    }
}

/// `create = "CREATE" SP mailbox [SP "(" "USE" SP "(" [use-attr *(SP use-attr)] ")" ")"]` (RFC 6154).
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Command> {
    let mut mailbox = cursor.mailbox()?;
    // The trailing separator announces child mailboxes, which need no preparation here.
    if mailbox.len() > 1 && mailbox.ends_with('/') {
        mailbox.pop();
    }
    let mut special_use = Vec::new();
    if cursor.eat(b' ') {
        if !cursor.eat_word("(USE ") {
            return expected("USE");
        }
        special_use = cursor.list(true, |cursor| {
            cursor.expect(b'\\', "a special use")?;
            Ok(cursor.atom("a special use")?.to_owned())
        })?;
        cursor.expect(b')', "the end of the parameters")?;
    }
    Ok(Command::Create {
        mailbox,
        special_use,
    })
}

/// `rename = "RENAME" SP mailbox SP mailbox`.
pub(super) fn rename(cursor: &mut Cursor<'_>) -> Result<Command> {
    let from = cursor.mailbox()?;
    cursor.space()?;
    Ok(Command::Rename {
        from,
        to: cursor.mailbox()?,
    })
}

/// `status = "STATUS" SP mailbox SP "(" status-att *(SP status-att) ")"`.
pub(super) fn status(cursor: &mut Cursor<'_>) -> Result<Command> {
    let mailbox = cursor.mailbox()?;
    cursor.space()?;
    Ok(Command::Status {
        mailbox,
        items: status_items(cursor)?,
    })
}

pub(super) fn status_items(cursor: &mut Cursor<'_>) -> Result<Vec<StatusItem>> {
    cursor.list(false, |cursor| {
        let name = cursor.atom("a status item")?;
        StatusItem::ALL
            .iter()
            .find(|(_, known)| known.eq_ignore_ascii_case(name))
            .map_or_else(|| expected("a status item"), |(item, _)| Ok(*item))
    })
}
