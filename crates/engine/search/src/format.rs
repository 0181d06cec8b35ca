//! Constants of the format, and the head of a segment; `docs/internals/search.md` draws the file.

use std::ops::Range;
use vere_units::{LogId, MailboxId};

use vere_mime::Zone;

use crate::codec::{u32_at, u64_at};

/// How a segment begins.
pub(crate) const MAGIC: &[u8; 8] = b"VERESRCH";
/// Version of the segment format, and of the rules by which texts are extracted.
pub(crate) const VERSION: u32 = 6;
/// Sections of each zone.
pub(crate) const ZONE_SECTIONS: usize = 6;
/// Sections of a zone, by their number in the zone. The first three are adjacent, so that a single read gets all
/// three.
pub(crate) const RUNS: usize = 0;
pub(crate) const GROUPS: usize = 1;
pub(crate) const LONG: usize = 2;
pub(crate) const POSTINGS: usize = 3;
pub(crate) const PLACES: usize = 4;
pub(crate) const CROSSED: usize = 5;
/// The first section of summaries, behind the documents and the sections of each zone.
pub(crate) const SUMMARIES: usize = 1 + ZONE_SECTIONS * Zone::ALL.len();
/// Sections of a segment.
pub(crate) const SECTIONS: usize = SUMMARIES + 2;
/// Octets of the head before its sections.
pub(crate) const FIXED: usize = 48;
/// Octets of the head.
pub(crate) const HEAD: usize = FIXED + SECTIONS * 16 + 4;
/// Octets with a separate checksum.
pub(crate) const BLOCK: usize = 16 * 1024;
/// Octet between runs; occurs in no text.
pub(crate) const MARK: u8 = 0xFF;
/// Runs in a group. The section of groups records where each group begins.
pub(crate) const GROUP: usize = 16;

/// The log and the mailbox of a segment's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) log: LogId,
    pub(crate) mailbox: MailboxId,
}

/// Content of the head.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) owner: Origin,
    pub(crate) documents: usize,
    /// First and last UID.
    pub(crate) uids: (u32, u32),
    sections: Vec<Range<u64>>,
}

impl Head {
    /// Returns the range of a section.
    pub(crate) fn section(&self, number: usize) -> Range<u64> {
        self.sections.get(number).cloned().unwrap_or(0..0)
    }

    /// Returns the range of a zone's section.
    pub(crate) fn of_zone(&self, zone: Zone, number: usize) -> Range<u64> {
        self.section(1 + zone as usize * ZONE_SECTIONS + number)
    }

    /// Returns the range of a section of summaries: number 0 has the blocks, number 1 the place of each block.
    pub(crate) fn of_summaries(&self, number: usize) -> Range<u64> {
        self.section(SUMMARIES + number)
    }

    /// Decodes a head, and the number of data octets that follow; absent if the head is damaged or of another format.
    pub(crate) fn decode(head: &[u8]) -> Option<(Self, u64)> {
        let sum = u32_at(head, HEAD - 4)?;
        if !head.starts_with(MAGIC)
            || u32_at(head, 8)? != VERSION
            || vere_checksum::crc32(&head[..HEAD - 4]) != sum
        {
            return None;
        }
        let data = u64_at(head, 40)?;
        let mut sections = Vec::with_capacity(SECTIONS);
        for number in 0..SECTIONS {
            let start = u64_at(head, FIXED + number * 16)?;
            let end = start.checked_add(u64_at(head, FIXED + number * 16 + 8)?)?;
            sections.push(Some(start..end).filter(|section| section.end <= data)?);
        }
        let decoded = Self {
            documents: u32_at(head, 12)? as usize,
            owner: Origin {
                log: LogId(u64_at(head, 16)?),
                mailbox: MailboxId(u64_at(head, 24)?),
            },
            uids: (u32_at(head, 32)?, u32_at(head, 36)?),
            sections,
        };
        Some((decoded, data))
    }
}
