//! Records of an index.

use vere_checksum::crc32;
use vere_units::Timestamp;

use super::{META_OCTETS_MAX, put, u32_at, u64_at};

/// Octets of the head of a record.
pub(crate) const RECORD_HEAD_OCTETS: u64 = 32;
/// Octets of the last record of an index: head and summary.
pub(crate) const TRAILER_OCTETS: u64 = RECORD_HEAD_OCTETS + SUMMARY_OCTETS;
const SUMMARY_OCTETS: u64 = 32;

const ENTRY: u32 = 1;
const TRAILER: u32 = 2;

/// The head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// An entry; its fields follow.
    Entry {
        /// The place of the entry in the segment.
        offset: u64,
        /// Octets of the APDU.
        octets: u64,
        /// Octets of the fields.
        meta: u32,
        /// CRC-32 of the fields.
        sum: u32,
    },
    /// The segment is complete; a [`Summary`] follows, and nothing behind it.
    Trailer {
        /// The length of the segment.
        length: u64,
        /// CRC-32 of the summary.
        sum: u32,
    },
}

impl Record {
    pub(crate) fn encode(&self) -> [u8; RECORD_HEAD_OCTETS as usize] {
        let (kind, meta, offset, length, sum) = match *self {
            Self::Entry {
                offset,
                octets,
                meta,
                sum,
            } => (ENTRY, meta, offset, octets, sum),
            Self::Trailer { length, sum } => (TRAILER, SUMMARY_OCTETS as u32, 0, length, sum),
        };
        let mut octets = [0; RECORD_HEAD_OCTETS as usize];
        put(&mut octets, 0, &kind.to_le_bytes());
        put(&mut octets, 4, &meta.to_le_bytes());
        put(&mut octets, 8, &offset.to_le_bytes());
        put(&mut octets, 16, &length.to_le_bytes());
        put(&mut octets, 24, &sum.to_le_bytes());
        let sum = crc32(octets.get(..28).unwrap_or_default());
        put(&mut octets, 28, &sum.to_le_bytes());
        octets
    }

    /// Reads a head; `None` for damaged octets and for lengths beyond the bounds.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        if u32_at(octets, 28)? != crc32(octets.get(..28)?) {
            return None;
        }
        let (meta, sum) = (u32_at(octets, 4)?, u32_at(octets, 24)?);
        let (offset, length) = (u64_at(octets, 8)?, u64_at(octets, 16)?);
        match u32_at(octets, 0)? {
            ENTRY if u64::from(meta) <= META_OCTETS_MAX => Some(Self::Entry {
                offset,
                octets: length,
                meta,
                sum,
            }),
            TRAILER if u64::from(meta) == SUMMARY_OCTETS && offset == 0 => {
                Some(Self::Trailer { length, sum })
            }
            _ => None,
        }
    }
}

/// What the trailer of an index says about the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// Entries.
    pub entries: u64,
    /// Octets of all APDUs.
    pub octets: u64,
    /// The earliest and the latest time of arrival; equal to zero without entries.
    pub first: Timestamp,
    pub last: Timestamp,
}

impl Summary {
    /// Counts an entry.
    pub(crate) fn add(&mut self, at: Timestamp, octets: u64) {
        self.first = if self.entries == 0 {
            at
        } else {
            self.first.min(at)
        };
        self.last = self.last.max(at);
        self.entries = self.entries.saturating_add(1);
        self.octets = self.octets.saturating_add(octets);
    }

    /// The trailer of an index for a segment of this length.
    pub(crate) fn trailer(&self, length: u64) -> [u8; TRAILER_OCTETS as usize] {
        let mut octets = [0; TRAILER_OCTETS as usize];
        let at = RECORD_HEAD_OCTETS as usize;
        put(&mut octets, at, &self.entries.to_le_bytes());
        put(&mut octets, at + 8, &self.octets.to_le_bytes());
        put(&mut octets, at + 16, &self.first.as_millis().to_le_bytes());
        put(&mut octets, at + 24, &self.last.as_millis().to_le_bytes());
        let sum = crc32(octets.get(at..).unwrap_or_default());
        put(&mut octets, 0, &Record::Trailer { length, sum }.encode());
        octets
    }

    /// Reads a trailer: the length of the segment, and the summary.
    pub(crate) fn of_trailer(octets: &[u8]) -> Option<(u64, Self)> {
        let (head, summary) = octets.split_at_checked(RECORD_HEAD_OCTETS as usize)?;
        let Some(Record::Trailer { length, sum }) = Record::decode(head) else {
            return None;
        };
        let summary = summary.get(..SUMMARY_OCTETS as usize)?;
        (crc32(summary) == sum).then_some(())?;
        let found = Self {
            entries: u64_at(summary, 0)?,
            octets: u64_at(summary, 8)?,
            first: Timestamp::from_millis(u64_at(summary, 16)?),
            last: Timestamp::from_millis(u64_at(summary, 24)?),
        };
        Some((length, found))
    }
}
