//! Places of frames in segments, and residence of segments.

use vere_ports::spill::SpillSlot;
use vere_ports::spool_log::LogStretch;

/// Number of a segment within its group.
pub(super) type SegmentKey = u32;

/// A place in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordPlace {
    pub(super) segment: SegmentKey,
    pub(super) offset: u32,
}

/// A stretch of octets in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: RecordPlace,
    pub(super) len: u32,
}

impl RecordPlace {
    pub(super) const fn piece(self, skip: usize, len: usize) -> Piece {
        Piece {
            at: Self {
                segment: self.segment,
                offset: self.offset + skip as u32,
            },
            len: len as u32,
        }
    }
}

/// Place on disk of a segment's octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// In the spill store, as written by the node.
    Spill(SpillSlot),
    /// In the log, as found at the start of the node.
    Log(LogStretch),
}

/// Residence of a segment's octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    /// Only in memory.
    Memory,
    /// In a write job of the spill store.
    Leaving,
    /// On disk.
    Spilled(Backing),
    /// On disk, and being read.
    Returning(Backing),
    /// In memory and on disk.
    Copied(Backing),
}

impl Residence {
    pub(super) const fn is_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Copied(_))
    }
}
