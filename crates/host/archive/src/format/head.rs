//! The head of a file, and the head of an entry of a segment.

use vere_checksum::crc32;
use vere_units::Timestamp;

use super::{META_OCTETS_MAX, put, u32_at, u64_at};

/// Octets of the head of a segment or an index.
pub(crate) const FILE_HEAD_OCTETS: u64 = 64;
/// Octets of the head of an entry.
pub(crate) const HEAD_OCTETS: u64 = 48;
/// The version of both formats.
const VERSION: u32 = 1;

/// Which file a head begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Segment,
    Index,
}

impl FileKind {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Segment => b"VEREARCH",
            Self::Index => b"VEREARIX",
        }
    }
}

/// The head of a segment or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHead {
    /// A random number in the head of the segment, of its index, and of all its entries: octets of a message cannot
    /// imitate an entry.
    pub nonce: u64,
    /// The first millisecond of the minute.
    pub start: Timestamp,
}

impl FileHead {
    pub(crate) fn encode(&self, kind: FileKind) -> [u8; FILE_HEAD_OCTETS as usize] {
        let mut octets = [0; FILE_HEAD_OCTETS as usize];
        put(&mut octets, 0, kind.magic());
        put(&mut octets, 8, &VERSION.to_le_bytes());
        put(&mut octets, 16, &self.nonce.to_le_bytes());
        put(&mut octets, 24, &self.start.as_millis().to_le_bytes());
        let sum = crc32(octets.get(..60).unwrap_or_default());
        put(&mut octets, 60, &sum.to_le_bytes());
        octets
    }

    /// Reads a head; `None` for octets of another kind or version, and for damaged octets.
    pub(crate) fn decode(kind: FileKind, octets: &[u8]) -> Option<Self> {
        let sound = octets.starts_with(kind.magic())
            && u32_at(octets, 8)? == VERSION
            && u32_at(octets, 60)? == crc32(octets.get(..60)?);
        sound.then_some(Self {
            nonce: u64_at(octets, 16)?,
            start: Timestamp::from_millis(u64_at(octets, 24)?),
        })
    }
}

/// The head of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryHead {
    /// The number of the segment.
    pub nonce: u64,
    /// The place of this head in the segment.
    pub offset: u64,
    /// Octets of the fields behind the head.
    pub meta: u32,
    /// CRC-32 of the fields.
    pub meta_sum: u32,
    /// Octets of the APDU behind the fields.
    pub octets: u64,
    /// CRC-32 of the APDU.
    pub octets_sum: u32,
}

impl EntryHead {
    pub(crate) fn encode(&self) -> [u8; HEAD_OCTETS as usize] {
        let mut octets = [0; HEAD_OCTETS as usize];
        put(&mut octets, 0, &self.nonce.to_le_bytes());
        put(&mut octets, 8, &self.offset.to_le_bytes());
        put(&mut octets, 16, &self.octets.to_le_bytes());
        put(&mut octets, 24, &self.octets_sum.to_le_bytes());
        put(&mut octets, 28, &self.meta.to_le_bytes());
        put(&mut octets, 32, &self.meta_sum.to_le_bytes());
        let sum = crc32(octets.get(..44).unwrap_or_default());
        put(&mut octets, 44, &sum.to_le_bytes());
        octets
    }

    /// Reads the head at a place; `None` for damaged octets, for another place or segment, and for lengths beyond the
    /// bounds.
    pub(crate) fn decode(octets: &[u8], nonce: u64, offset: u64) -> Option<Self> {
        Self::decode_any(octets).filter(|head| head.nonce == nonce && head.offset == offset)
    }

    /// Reads a head of any segment.
    pub(crate) fn decode_any(octets: &[u8]) -> Option<Self> {
        let head = Self {
            nonce: u64_at(octets, 0)?,
            offset: u64_at(octets, 8)?,
            octets: u64_at(octets, 16)?,
            octets_sum: u32_at(octets, 24)?,
            meta: u32_at(octets, 28)?,
            meta_sum: u32_at(octets, 32)?,
        };
        let sound = u32_at(octets, 44)? == crc32(octets.get(..44)?)
            && u64::from(head.meta) <= META_OCTETS_MAX
            && head.checked_end().is_some();
        sound.then_some(head)
    }

    /// The place of the APDU.
    pub(crate) const fn content(&self) -> u64 {
        self.offset
            .saturating_add(HEAD_OCTETS)
            .saturating_add(self.meta as u64)
    }

    /// The place behind the entry.
    pub(crate) const fn end(&self) -> u64 {
        self.content().saturating_add(self.octets)
    }

    fn checked_end(&self) -> Option<u64> {
        let content = self.offset.checked_add(HEAD_OCTETS)?;
        content
            .checked_add(self.meta.into())?
            .checked_add(self.octets)
    }
}
