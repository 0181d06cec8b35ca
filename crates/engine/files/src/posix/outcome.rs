//! What calls lead to.

use bytes::Bytes;
use vere_ports::files::{Errno, FileTime, Inode, Reply};

use crate::content::{Piece, UnsentId};
use crate::rows::Extent;

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done. (The reply to a `Forget` goes nowhere.)
    Reply(Result<Reply, Errno>),
    /// A read: the octets of the pieces, in turn, are the reply.
    Read(ReadPlan),
    /// The reply is due when the servers have everything about the inode.
    Sync {
        /// The inode; none stands for the whole volume.
        inode: Option<Inode>,
        /// The reply.
        reply: Reply,
    },
}

/// The octets of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPlan {
    /// The file.
    pub inode: Inode,
    /// Where the read begins.
    pub offset: u64,
    /// The octets in order.
    pub pieces: Vec<Piece>,
}

impl ReadPlan {
    /// How many octets the read has.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.pieces
            .iter()
            .map(|piece| u64::from(piece.length))
            .sum()
    }

    /// The pieces, each with a place in the file.
    pub fn at_offsets(&self) -> impl Iterator<Item = (u64, &Piece)> {
        let mut at = self.offset;
        self.pieces.iter().map(move |piece| {
            let begin = at;
            at = at.saturating_add(piece.length.into());
            (begin, piece)
        })
    }
}

/// A file with unsent octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyFile {
    /// The file.
    pub inode: Inode,
    /// Octets that no server has.
    pub octets: u64,
    /// The first unsent write.
    pub since: FileTime,
}

/// Unsent octets of a file without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentRange {
    /// Where the range begins.
    pub offset: u64,
    /// Octets in all.
    pub length: u64,
    /// Their buffers, in order.
    pub pieces: Vec<Piece>,
}

/// A change of content that no row tells. The journal keeps the changes in order; the changes of a record are replayed before
/// the rows of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentChange {
    /// Octets written.
    Write {
        /// The file.
        inode: Inode,
        /// Where in the file.
        offset: u64,
        /// The buffer.
        id: UnsentId,
        /// Octets of the buffer before these.
        skip: u32,
        /// The octets.
        data: Bytes,
    },
    /// A hole, or a cut of the end (`to` is the highest number then).
    Cut {
        /// The file.
        inode: Inode,
        /// Where the hole begins.
        from: u64,
        /// Where the hole ends.
        to: u64,
    },
    /// A range that lies in a chunk on a server: octets copied from another place.
    Chunk {
        /// The file.
        inode: Inode,
        /// Where in the file.
        offset: u64,
        /// How many octets.
        length: u32,
        /// The chunk.
        extent: Extent,
        /// Octets of the chunk before these.
        skip: u32,
    },
}

impl ContentChange {
    /// The file.
    #[must_use]
    pub const fn inode(&self) -> Inode {
        match self {
            Self::Write { inode, .. } | Self::Cut { inode, .. } | Self::Chunk { inode, .. } => {
                *inode
            }
        }
    }

    /// The same change of another file.
    #[must_use]
    pub fn with_inode(mut self, to: Inode) -> Self {
        match &mut self {
            Self::Write { inode, .. } | Self::Cut { inode, .. } | Self::Chunk { inode, .. } => {
                *inode = to;
            }
        }
        self
    }
}
