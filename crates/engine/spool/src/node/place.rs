//! Where frames lie: places in segments, and where the octets of a segment are.

use vere_ports::spill::SpillSlot;
use vere_ports::spool_log::LogStretch;

/// A segment within its group.
pub(super) type SegmentKey = u32;

/// A place in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) segment: SegmentKey,
    pub(super) offset: u32,
}

/// A stretch of octets in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: Place,
    pub(super) len: u32,
}

impl Place {
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

/// Where the octets of a segment are that is not only in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// In the spill store, as they were written out.
    Spill(SpillSlot),
    /// In the log, as they were found at the start.
    Log(LogStretch),
}

/// Where the octets of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    /// In memory and nowhere else.
    Memory,
    /// With the spill store, which writes them there.
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
