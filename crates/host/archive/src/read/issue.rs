//! What is wrong with an archive.

use std::fmt;

use crate::name::SegmentName;

/// Issues that are kept; further ones are counted.
const ISSUES_MAX: usize = 1_000;

/// Something wrong in a segment or its index. Places and lengths are octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issue {
    /// There is no index: the segment is read in its place.
    IndexMissing,
    /// The index is damaged from a place on: the rest is read from the segment.
    IndexDamaged {
        /// The place in the index.
        at: u64,
    },
    /// The index has other entries than the segment.
    IndexDiffers,
    /// There is an index without a segment.
    SegmentMissing,
    /// The head of the segment is damaged; the entries are read all the same.
    HeadDamaged,
    /// The octets of an entry do not have their checksum.
    OctetsDamaged {
        /// The place of the entry.
        at: u64,
    },
    /// No entries can be read here.
    Gap {
        /// The first octet.
        at: u64,
        /// The number of octets.
        octets: u64,
    },
    /// The end is no whole entry: a write is under way, or a crash has cut the write.
    Unfinished {
        /// The first octet.
        at: u64,
        /// The number of octets.
        octets: u64,
    },
}

impl Issue {
    /// Whether archived octets are damaged or lost. Damaged indexes and unfinished ends lose nothing.
    #[must_use]
    pub const fn is_loss(self) -> bool {
        matches!(
            self,
            Self::SegmentMissing | Self::OctetsDamaged { .. } | Self::Gap { .. }
        )
    }

    /// Whether the archive is not as written; an unfinished end is.
    #[must_use]
    pub const fn is_damage(self) -> bool {
        !matches!(self, Self::Unfinished { .. })
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IndexMissing => f.write_str("index missing"),
            Self::IndexDamaged { at } => write!(f, "index damaged at {at}"),
            Self::IndexDiffers => f.write_str("index has other entries than the segment"),
            Self::SegmentMissing => f.write_str("segment missing, index present"),
            Self::HeadDamaged => f.write_str("head of the segment damaged"),
            Self::OctetsDamaged { at } => write!(f, "entry at {at}: content damaged"),
            Self::Gap { at, octets } => write!(f, "{octets} bytes damaged at {at}"),
            Self::Unfinished { at, octets } => {
                write!(f, "{octets} bytes at {at}: unfinished write")
            }
        }
    }
}

/// The issues of an archive, at most 1,000.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Issues {
    /// The issues with their segments, in the order of reading.
    pub list: Vec<(SegmentName, Issue)>,
    /// The number of further issues.
    pub more: u64,
}

impl Issues {
    pub(crate) fn add(&mut self, segment: SegmentName, issue: Issue) {
        match self.list.len() < ISSUES_MAX {
            true => self.list.push((segment, issue)),
            false => self.more = self.more.saturating_add(1),
        }
    }

    /// Whether the archive is not as written.
    #[must_use]
    pub fn has_damage(&self) -> bool {
        self.more > 0 || self.list.iter().any(|(_, issue)| issue.is_damage())
    }
}
