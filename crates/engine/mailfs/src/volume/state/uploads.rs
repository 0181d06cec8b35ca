//! Packs on their way.

use crate::content::{Piece, Source, UnsentId};
use crate::format::MailCopy;
use crate::volume::job::{Packed, Unpacked};
use hashbrown::HashMap;
use vere_ports::files::Inode;
use vere_ports::mail_accounts::Urgency;

/// Octets of a chunk.
pub(crate) const CHUNK_MAX: usize = 512 << 10;
/// Octets of a pack's chunks.
pub(crate) const PACK_MAX: usize = 1 << 20;
/// Chunks of a pack or a commit: below the frames that a mail may have.
pub(crate) const CHUNKS_MAX: usize = 4_000;

/// Packs on their way.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    pub(crate) packs: HashMap<u64, Upload>,
}

/// A pack on its way.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) chunks: Vec<Cut>,
    /// The octets of the chunks, for a pack that must go to another group.
    pub(crate) unpacked: Vec<Unpacked>,
    pub(crate) group: u16,
    pub(crate) urgency: Urgency,
    pub(crate) copies: Vec<MailCopy>,
    pub(crate) packed: Option<Packed>,
    /// An account that may have the pack and has not said so.
    pub(crate) doubt: Option<u16>,
    pub(crate) octets: usize,
}

/// A chunk, and the ranges of buffers in it.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    pub(crate) inode: Inode,
    pub(crate) offset: u64,
    /// Buffer, octets to skip, length.
    pub(crate) ranges: Vec<(u64, u32, u32)>,
}

impl Cut {
    /// The ranges as pieces of the file.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let piece = |(id, skip, length): &(u64, u32, u32)| Piece {
            length: *length,
            source: Source::Unsent {
                id: UnsentId(*id),
                skip: *skip,
            },
        };
        self.ranges.iter().map(piece).collect()
    }

    pub(crate) fn octets(&self) -> usize {
        let lengths = self.ranges.iter().map(|(_, _, length)| *length);
        lengths.fold(0, |sum, length| {
            sum.saturating_add(usize::try_from(length).unwrap_or(0))
        })
    }
}

impl Uploads {
    /// Octets on their way.
    pub(crate) fn octets(&self) -> usize {
        self.packs.values().map(|upload| upload.octets).sum()
    }

    pub(crate) fn count(&self) -> usize {
        self.packs.len()
    }

    /// Whether a pack is on its way.
    pub(crate) fn has(&self, pack: u64) -> bool {
        self.packs.contains_key(&pack)
    }
}
