//! The record of a commit: the last frame of a mail of kind commit.
//!
//! ```text
//! commit   0  version u8 = 1 | kind u8: 1 change, 2 merge, 3 registration of a writer, 4 lead change | flags u8: 1 ancestors | 0 u8
//!          4  lead epoch u32 | generation u64 | parent commit (16) | time i64 (ms)
//!         40  checkpoint: generation covered u64 | UID of the covered commit u32 | 0 u32 | root page: locator (40)
//!             all zeros: no checkpoint yet
//!         96  merged u16 x commit id (16), after the count
//!          .  ancestors, if flagged: u8 count x { generation u64 | commit id (16) }
//!          .  rows u32 x { op u8: 1 put, 2 remove | key v length, octets | value v length, octets (put) }
//!          .  index of the frames before, with content of small files
//! ```

use std::num::NonZeroU64;

use super::bounds::{ANCESTORS_MAX, MERGED_MAX, ROW_OCTETS_MAX, ROWS_MAX};
use super::error::FormatError;
use super::ids::MailId;
use super::index::Index;
use super::locator::Locator;
use super::rows::Budget;
use super::wire::{Reader, within};

const WITH_ANCESTORS: u8 = 1;
const PUT: u8 = 1;
const REMOVE: u8 = 2;
/// Octets of a checkpoint.
const CHECKPOINT: usize = 16 + Locator::OCTETS;

/// What a commit does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// Changes.
    Change = 1,
    /// Changes, and the adoption of commits that lost a race.
    Merge = 2,
    /// The registration of a writer.
    Registration = 3,
    /// Another lead.
    LeadChange = 4,
}

impl RecordKind {
    const ALL: [Self; 4] = [
        Self::Change,
        Self::Merge,
        Self::Registration,
        Self::LeadChange,
    ];
}

/// A state of the tree in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The generation of the newest commit whose rows the pages have. Generations begin at 1.
    pub covers: NonZeroU64,
    /// The UID of that commit on the lead.
    pub covered_uid: u32,
    /// The root page.
    pub root: Locator,
}

/// An ancestor of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ancestor {
    /// The generation.
    pub generation: u64,
    /// The commit.
    pub commit: MailId,
}

/// A change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowChange {
    /// The key.
    pub key: Vec<u8>,
    /// The value; absent if the row is removed.
    pub value: Option<Vec<u8>>,
}

/// How many of these rows, from the first on, one commit has room for: [`ROWS_MAX`], and [`ROW_OCTETS_MAX`] of keys and values.
#[must_use]
pub fn rows_that_fit(rows: &[RowChange]) -> usize {
    let mut octets = 0_usize;
    let fits = |row: &&RowChange| {
        let value = row.value.as_ref().map_or(0, Vec::len);
        octets = octets.saturating_add(row.key.len()).saturating_add(value);
        octets <= ROW_OCTETS_MAX
    };
    rows.iter().take(ROWS_MAX).take_while(fits).count()
}

/// The record of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the commit does.
    pub kind: RecordKind,
    /// The epoch of the lead.
    pub lead_epoch: u32,
    /// The generation, the parent's plus 1.
    pub generation: u64,
    /// The parent; [`MailId::NONE`] for the first commit.
    pub parent: MailId,
    /// The writer's clock, in ms since 1970.
    pub time: i64,
    /// The newest checkpoint known to the writer.
    pub checkpoint: Option<Checkpoint>,
    /// Commits adopted.
    pub merged: Vec<MailId>,
    /// Ancestors at distances 1, 2, 4 and so on, in every 256th commit.
    pub ancestors: Vec<Ancestor>,
    /// The changes, in order.
    pub rows: Vec<RowChange>,
    /// The frames before the record.
    pub index: Index,
}

impl Record {
    /// The octets.
    ///
    /// # Errors
    ///
    /// If a list, key or value is beyond its bound.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut out = Vec::new();
        let flags = if self.ancestors.is_empty() {
            0
        } else {
            WITH_ANCESTORS
        };
        out.extend_from_slice(&[1, self.kind as u8, flags, 0]);
        out.extend_from_slice(&self.lead_epoch.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.parent.0);
        out.extend_from_slice(&self.time.to_le_bytes());
        put_checkpoint(self.checkpoint.as_ref(), &mut out);
        self.put_lists(&mut out)?;
        put_rows(&self.rows, &mut out)?;
        self.index.put(&mut out)?;
        Ok(out)
    }

    fn put_lists(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        within("merged commits", self.merged.len(), MERGED_MAX)?;
        let merged = u16::try_from(self.merged.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&merged.to_le_bytes());
        for commit in &self.merged {
            out.extend_from_slice(&commit.0);
        }
        within("ancestors", self.ancestors.len(), ANCESTORS_MAX)?;
        if !self.ancestors.is_empty() {
            out.push(u8::try_from(self.ancestors.len()).unwrap_or(u8::MAX));
        }
        for ancestor in &self.ancestors {
            out.extend_from_slice(&ancestor.generation.to_le_bytes());
            out.extend_from_slice(&ancestor.commit.0);
        }
        Ok(())
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// If the octets are not exactly a record of a known version, or a list, key or value is beyond its bound.
    pub fn decode(octets: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new("commit record", octets);
        reader.version("format of a commit record")?;
        let kind = kind(reader.u8()?)?;
        let flags = flags(reader.u8()?)?;
        reader.zeros(1)?;
        let record = Self {
            kind,
            lead_epoch: reader.u32()?,
            generation: reader.u64()?,
            parent: MailId(reader.array()?),
            time: reader.i64()?,
            checkpoint: checkpoint(&mut reader)?,
            merged: merged(&mut reader)?,
            ancestors: if flags == WITH_ANCESTORS {
                ancestors(&mut reader)?
            } else {
                Vec::new()
            },
            rows: rows(&mut reader)?,
            index: Index::read(&mut reader)?,
        };
        reader.end()?;
        Ok(record)
    }
}

fn kind(number: u8) -> Result<RecordKind, FormatError> {
    let mut kinds = RecordKind::ALL.into_iter();
    let known = kinds.find(|kind| *kind as u8 == number);
    known.ok_or(FormatError::Unknown {
        what: "kind of commit",
        expected: "1 to 4",
        found: number.into(),
    })
}

fn flags(found: u8) -> Result<u8, FormatError> {
    if found & !WITH_ANCESTORS == 0 {
        return Ok(found);
    }
    Err(FormatError::Unknown {
        what: "flags of a commit",
        expected: "0 or 1 (ancestors)",
        found: found.into(),
    })
}

fn put_checkpoint(checkpoint: Option<&Checkpoint>, out: &mut Vec<u8>) {
    let Some(checkpoint) = checkpoint else {
        return out.extend_from_slice(&[0; CHECKPOINT]);
    };
    out.extend_from_slice(&checkpoint.covers.get().to_le_bytes());
    out.extend_from_slice(&checkpoint.covered_uid.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    checkpoint.root.encode(out);
}

fn checkpoint(reader: &mut Reader<'_>) -> Result<Option<Checkpoint>, FormatError> {
    let Some(covers) = NonZeroU64::new(reader.u64()?) else {
        reader.zeros(CHECKPOINT.saturating_sub(8))?;
        return Ok(None);
    };
    let covered_uid = reader.u32()?;
    reader.zeros(4)?;
    Ok(Some(Checkpoint {
        covers,
        covered_uid,
        root: Locator::read(reader)?,
    }))
}

fn merged(reader: &mut Reader<'_>) -> Result<Vec<MailId>, FormatError> {
    let count = reader.u16()?;
    within("merged commits", count.into(), MERGED_MAX)?;
    (0..count).map(|_| reader.array().map(MailId)).collect()
}

fn ancestors(reader: &mut Reader<'_>) -> Result<Vec<Ancestor>, FormatError> {
    let count = reader.u8()?;
    within("ancestors", count.into(), ANCESTORS_MAX)?;
    if count == 0 {
        return Err(FormatError::Below {
            what: "ancestors of a commit with the flag",
            min: 1,
            found: 0,
        });
    }
    let mut ancestors = Vec::new();
    for _ in 0..count {
        ancestors.push(Ancestor {
            generation: reader.u64()?,
            commit: MailId(reader.array()?),
        });
    }
    Ok(ancestors)
}

fn put_rows(rows: &[RowChange], out: &mut Vec<u8>) -> Result<(), FormatError> {
    Budget::count(rows.len())?;
    let mut budget = Budget::default();
    let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_le_bytes());
    for row in rows {
        out.push(if row.value.is_some() { PUT } else { REMOVE });
        budget.put_key(out, &row.key)?;
        if let Some(value) = &row.value {
            budget.put_value(out, value)?;
        }
    }
    Ok(())
}

fn rows(reader: &mut Reader<'_>) -> Result<Vec<RowChange>, FormatError> {
    let count = reader.u32()?;
    Budget::count(usize::try_from(count).unwrap_or(usize::MAX))?;
    let mut budget = Budget::default();
    let mut rows = Vec::new();
    for _ in 0..count {
        let op = reader.u8()?;
        let key = budget.key(reader)?;
        let value = match op {
            PUT => Some(budget.value(reader)?),
            REMOVE => None,
            found => {
                return Err(FormatError::Unknown {
                    what: "change of a row",
                    expected: "1 (put) or 2 (remove)",
                    found: found.into(),
                });
            }
        };
        rows.push(RowChange { key, value });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
