//! The records of the journal: what a call has changed, and how far commits have come.
//!
//! ```text
//! record   parts, each:
//!          0  kind u8 | octets behind u32
//!   1 row      key length u16, key | present u8 | value
//!   2 write    inode u64 | offset u64 | buffer u64 | octets of the buffer before u32 | octets
//!   3 cut      inode u64 | from u64 | to u64
//!   7 chunk    inode u64 | offset u64 | length u32 | pack u64 | at u32 | sealed u32 | skip u32
//!   4 reserved writer u16 | next sequence u64 | next block u32
//!   5 begun    commit (16) | parent (16) | through u64 | exceptions x { inode u64 | since u64 }
//!   6 won      commit (16) | generation u64 | UIDVALIDITY u32 | UID u32
//!   8 follows  as won: the changes lie on top of this commit from here on
//!   9 drop     key: the change of the row is void
//!  10 moved    from u64 | to u64: the content goes on with another inode; 0: the change of the content is void
//!  11 adopts   commit (16): a commit of this mount without any of its changes
//!  12 brought  as won | through u64 | exceptions: the changes behind lie on top of this commit, whatever was known before
//!  13 base     as row: what the chain has for a row that the record changes
//!  14 piece    number u32: several records are about a merge, and count with the last, the record with part 12
//!  15 partial  commit (16): a commit of this mount with some of the waiting rows
//! ```
//!
//! A UIDVALIDITY of 0 in part 6, 8 or 12 stands for an unknown place: the commit was read from a copy of the log.

use bytes::Bytes;

use vere_ports::files::Inode;

use crate::content::UnsentId;
use crate::format::seal::TAG;
use crate::format::{MailId, PackNumber};
use crate::posix::ContentChange;
use crate::rows::Extent;
use crate::tree::Change;

/// A part of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A row of the tree has a new value, or none.
    Row(Change),
    /// The content of a file has changed.
    Content(ContentChange),
    /// Numbers below these are given away.
    Reserved {
        /// The writer.
        writer: u16,
        /// The next sequence of a mail.
        sequence: u64,
        /// The next block of homes.
        block: u32,
    },
    /// A commit is about to be sent.
    Begun(Begun),
    /// A commit is in the chain.
    Won(Won),
    /// The changes lie on top of this commit of the chain.
    Follows(Won),
    /// The change of a row is void.
    Drop(Vec<u8>),
    /// The content of a file goes on with another inode, or its change is void.
    Moved(Inode, Option<Inode>),
    /// A commit of this mount, with changes of others only, is about to be sent.
    Adopts(MailId),
    /// The changes lie on top of this commit of the chain, since their own base is gone.
    Brought(Brought),
    /// What the chain has for a row that changes.
    Base(Change),
    /// Several records are about a merge, and count with the last, the record with [`Part::Brought`]. The number of this record.
    Piece(u32),
    /// A commit with some of the waiting rows is about to be sent: a later commit has the rest, and with that one begins what
    /// the chain has of the journal.
    Partial(MailId),
}

/// Changes whose base was gone lie on the newest state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brought {
    /// The newest commit then. Commits that earlier records know count no longer.
    pub won: Won,
    /// Every row change up to here was in the chain before.
    pub through: u64,
    /// Files whose content was in the chain as of an earlier position only.
    pub exceptions: Vec<(u64, u64)>,
}

/// What a commit has of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The commit.
    pub commit: MailId,
    /// Its parent.
    pub parent: MailId,
    /// Every row change up to here is in the commit.
    pub through: u64,
    /// Files whose content is in the commit as of an earlier position only.
    pub exceptions: Vec<(u64, u64)>,
}

/// A commit of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Won {
    /// The commit.
    pub commit: MailId,
    /// The generation.
    pub generation: u64,
    /// UIDVALIDITY of the lead's log.
    pub uid_validity: u32,
    /// The UID there.
    pub uid: u32,
}

impl Won {
    /// The commit at an unknown place of the lead's log, since a copy of the log has told of the commit.
    #[must_use]
    pub const fn without_place(self) -> Self {
        Self {
            uid_validity: 0,
            uid: 0,
            ..self
        }
    }

    /// Whether the place in the lead's log is known. No log has UIDVALIDITY 0.
    #[must_use]
    pub const fn has_place(&self) -> bool {
        self.uid_validity != 0
    }
}

/// Writes the parts; the buffer has room for a seal's tag.
pub fn encode(parts: &[Part]) -> Vec<u8> {
    let room: usize = parts.iter().map(room_of).sum();
    let mut out = Vec::with_capacity(room.saturating_add(TAG));
    for part in parts {
        let head = out.len();
        out.extend_from_slice(&[0; 5]);
        let from = out.len();
        let kind = write(part, &mut out);
        let length = u32::try_from(out.len().saturating_sub(from)).unwrap_or(u32::MAX);
        let fields = out.get_mut(head..).and_then(<[u8]>::split_first_mut);
        if let Some((first, rest)) = fields
            && let Some(field) = rest.first_chunk_mut::<4>()
        {
            (*first, *field) = (kind, length.to_le_bytes());
        }
    }
    out
}

/// Octets of a part, or somewhat more: a record with content is long, and is written into one buffer without a move.
pub fn room_of(part: &Part) -> usize {
    const NUMBERS: usize = 64;
    const EXCEPTION: usize = 16;
    let content = match part {
        Part::Row(change) | Part::Base(change) => {
            let value = change.value.as_ref().map_or(0, Vec::len);
            change.key.len().saturating_add(value)
        }
        Part::Content(ContentChange::Write { data, .. }) => data.len(),
        Part::Drop(key) => key.len(),
        Part::Begun(Begun { exceptions, .. }) | Part::Brought(Brought { exceptions, .. }) => {
            exceptions.len().saturating_mul(EXCEPTION)
        }
        _ => 0,
    };
    content.saturating_add(NUMBERS)
}

fn write(part: &Part, out: &mut Vec<u8>) -> u8 {
    match part {
        Part::Row(change) => {
            write_row(change, out);
            1
        }
        Part::Content(change) => write_content(change, out),
        Part::Reserved {
            writer,
            sequence,
            block,
        } => {
            out.extend_from_slice(&writer.to_le_bytes());
            out.extend_from_slice(&sequence.to_le_bytes());
            out.extend_from_slice(&block.to_le_bytes());
            4
        }
        Part::Begun(begun) => {
            out.extend_from_slice(&begun.commit.0);
            out.extend_from_slice(&begun.parent.0);
            write_extent((begun.through, &begun.exceptions), out);
            5
        }
        Part::Won(won) => {
            write_won(*won, out);
            6
        }
        Part::Follows(won) => {
            write_won(*won, out);
            8
        }
        Part::Drop(key) => {
            out.extend_from_slice(key);
            9
        }
        Part::Moved(from, to) => {
            out.extend_from_slice(&from.0.to_le_bytes());
            out.extend_from_slice(&to.map_or(0, |to| to.0).to_le_bytes());
            10
        }
        Part::Adopts(commit) => {
            out.extend_from_slice(&commit.0);
            11
        }
        Part::Brought(brought) => {
            write_won(brought.won, out);
            write_extent((brought.through, &brought.exceptions), out);
            12
        }
        Part::Base(change) => {
            write_row(change, out);
            13
        }
        Part::Piece(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            14
        }
        Part::Partial(commit) => {
            out.extend_from_slice(&commit.0);
            15
        }
    }
}

fn write_row(change: &Change, out: &mut Vec<u8>) {
    let length = u16::try_from(change.key.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&change.key);
    out.push(change.value.is_some().into());
    out.extend_from_slice(change.value.as_deref().unwrap_or_default());
}

/// How much of the journal the chain has.
fn write_extent((through, exceptions): (u64, &[(u64, u64)]), out: &mut Vec<u8>) {
    out.extend_from_slice(&through.to_le_bytes());
    for (inode, since) in exceptions {
        out.extend_from_slice(&inode.to_le_bytes());
        out.extend_from_slice(&since.to_le_bytes());
    }
}

fn write_won(won: Won, out: &mut Vec<u8>) {
    out.extend_from_slice(&won.commit.0);
    out.extend_from_slice(&won.generation.to_le_bytes());
    out.extend_from_slice(&won.uid_validity.to_le_bytes());
    out.extend_from_slice(&won.uid.to_le_bytes());
}

fn write_content(change: &ContentChange, out: &mut Vec<u8>) -> u8 {
    let mut numbers = |inode: &Inode, all: &[u64]| {
        out.extend_from_slice(&inode.0.to_le_bytes());
        for number in all {
            out.extend_from_slice(&number.to_le_bytes());
        }
    };
    match change {
        ContentChange::Write {
            inode,
            offset,
            id,
            skip,
            data,
        } => {
            numbers(inode, &[*offset, id.0]);
            out.extend_from_slice(&skip.to_le_bytes());
            out.extend_from_slice(data);
            2
        }
        ContentChange::Cut { inode, from, to } => {
            numbers(inode, &[*from, *to]);
            3
        }
        ContentChange::Chunk {
            inode,
            offset,
            length,
            extent,
            skip,
        } => {
            numbers(inode, &[*offset]);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&extent.pack.0.to_le_bytes());
            for number in [extent.at, extent.sealed_len, *skip] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            7
        }
    }
}

/// Reads the parts of a record; `None` if the octets are none.
pub fn decode(octets: &Bytes) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = octets.clone();
    while !rest.is_empty() {
        let mut cursor = Cursor(rest);
        let kind = cursor.u8()?;
        let length = usize::try_from(cursor.u32()?).ok()?;
        let body = Cursor(cursor.take(length)?);
        parts.push(read(kind, body)?);
        rest = cursor.0;
    }
    Some(parts)
}

fn read(kind: u8, mut body: Cursor) -> Option<Part> {
    let part = match kind {
        1 => Part::Row(body.row()?),
        2 => Part::Content(ContentChange::Write {
            inode: Inode(body.u64()?),
            offset: body.u64()?,
            id: UnsentId(body.u64()?),
            skip: body.u32()?,
            data: body.rest(),
        }),
        3 => Part::Content(ContentChange::Cut {
            inode: Inode(body.u64()?),
            from: body.u64()?,
            to: body.u64()?,
        }),
        7 => Part::Content(ContentChange::Chunk {
            inode: Inode(body.u64()?),
            offset: body.u64()?,
            length: body.u32()?,
            extent: Extent {
                pack: PackNumber(body.u64()?),
                at: body.u32()?,
                sealed_len: body.u32()?,
            },
            skip: body.u32()?,
        }),
        4 => Part::Reserved {
            writer: body.u16()?,
            sequence: body.u64()?,
            block: body.u32()?,
        },
        5 => {
            let (commit, parent, through) = (body.id()?, body.id()?, body.u64()?);
            Part::Begun(Begun {
                commit,
                parent,
                through,
                exceptions: body.exceptions()?,
            })
        }
        6 => Part::Won(body.won()?),
        8 => Part::Follows(body.won()?),
        9 => Part::Drop(body.rest().to_vec()),
        10 => {
            let (from, to) = (Inode(body.u64()?), body.u64()?);
            Part::Moved(from, (to != 0).then_some(Inode(to)))
        }
        11 => Part::Adopts(body.id()?),
        12 => Part::Brought(Brought {
            won: body.won()?,
            through: body.u64()?,
            exceptions: body.exceptions()?,
        }),
        13 => Part::Base(body.row()?),
        14 => Part::Piece(body.u32()?),
        15 => Part::Partial(body.id()?),
        _ => return None,
    };
    body.0.is_empty().then_some(part)
}

/// Unread octets.
struct Cursor(Bytes);

impl Cursor {
    fn take(&mut self, octets: usize) -> Option<Bytes> {
        (octets <= self.0.len()).then(|| self.0.split_to(octets))
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.as_ref().try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<MailId> {
        self.array().map(MailId)
    }

    fn row(&mut self) -> Option<Change> {
        let length = self.u16()?;
        let key = self.take(length.into())?.to_vec();
        let value = match self.u8()? {
            0 => None,
            _ => Some(self.rest().to_vec()),
        };
        Some(Change { key, value })
    }

    fn exceptions(&mut self) -> Option<Vec<(u64, u64)>> {
        let mut exceptions = Vec::new();
        while !self.0.is_empty() {
            exceptions.push((self.u64()?, self.u64()?));
        }
        Some(exceptions)
    }

    fn won(&mut self) -> Option<Won> {
        Some(Won {
            commit: self.id()?,
            generation: self.u64()?,
            uid_validity: self.u32()?,
            uid: self.u32()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_about_a_base_come_back() {
        let won = Won {
            commit: MailId([5; 16]),
            generation: 7,
            uid_validity: 8,
            uid: 9,
        };
        let base = |value| {
            Part::Base(Change {
                key: vec![2, 1],
                value,
            })
        };
        let parts = vec![
            base(None),
            base(Some(Vec::new())),
            base(Some(vec![3])),
            Part::Brought(Brought {
                won,
                through: 10,
                exceptions: vec![(11, 12), (13, 14)],
            }),
            Part::Partial(MailId([15; 16])),
        ];
        let octets = Bytes::from(encode(&parts));
        assert_eq!(decode(&octets), Some(parts));
        for end in 1..octets.len() {
            // A cut record is none, or has whole parts alone.
            let cut = decode(&octets.slice(..end));
            assert!(cut.is_none_or(|parts| parts.len() < 5));
        }
    }
}
