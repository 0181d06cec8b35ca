//! Pieces of files.

use crate::rows::Extent;

/// Names octets that no server has yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnsentId(pub u64);

/// Where octets come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A hole.
    Zero,
    /// A chunk on the servers.
    Chunk {
        /// The frame.
        extent: Extent,
        /// Octets of the chunk before the piece.
        skip: u32,
    },
    /// Octets that no server has yet.
    Unsent {
        /// The buffer.
        id: UnsentId,
        /// Octets of the buffer before the piece.
        skip: u32,
    },
}

/// Octets of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// How many; never 0.
    pub length: u32,
    /// Where from.
    pub source: Source,
}

impl Piece {
    /// A part of the piece.
    pub(super) fn cut(self, from: u64, length: u64) -> Self {
        let more = narrow(from);
        let source = match self.source {
            Source::Zero => Source::Zero,
            Source::Chunk { extent, skip } => Source::Chunk {
                extent,
                skip: skip.saturating_add(more),
            },
            Source::Unsent { id, skip } => Source::Unsent {
                id,
                skip: skip.saturating_add(more),
            },
        };
        let length = narrow(length);
        Self { length, source }
    }

    /// Whether another piece goes on where this piece ends, in the file and in the chunk.
    pub(super) fn continues(self, next: Self) -> bool {
        let joined = self.length.checked_add(next.length);
        let chunk = matches!(self.source, Source::Chunk { .. });
        let rest = self.cut(u64::from(self.length), u64::from(next.length));
        joined.is_some() && chunk && rest == next
    }

    /// Where the piece ends.
    pub(super) fn end(self, begin: u64) -> u64 {
        begin.saturating_add(u64::from(self.length))
    }
}

/// A length below 4 GiB: pieces are no longer.
pub(super) fn narrow(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}
