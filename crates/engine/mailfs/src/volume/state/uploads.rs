//! Packs on the way.

use crate::content::{CHUNK_MAX, Piece, Source, UnsentId};
use crate::format::{ChunkId, MailCopy, PackNumber};
use crate::volume::job::{Packed, Unpacked};
use hashbrown::{HashMap, HashSet};
use vere_ports::files::Inode;
use vere_ports::mail_accounts::Urgency;

/// Octets of a pack's chunks with which a pack takes no further chunk: packs of long files have 1 MiB on average, and none has more
/// than a mail may have, since a chunk has 2 MiB at most.
pub(crate) const PACK_FULL: usize = 768 << 10;
/// Octets of a pack's chunks, at most.
pub(crate) const PACK_MAX: usize = PACK_FULL + CHUNK_MAX;
/// Chunks of a pack or a commit: below the frames that a mail may have.
pub(crate) const CHUNKS_MAX: usize = 4_000;

/// Packs on the way.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    pub(crate) packs: HashMap<u64, Upload>,
    /// Chunks on the way: the pack, and the chunk's place among the pack's chunks.
    pub(crate) coming: HashMap<ChunkId, (u64, usize)>,
    /// Packs whose chunks have ids, and wait for rows that tell whether the volume has the chunks.
    pub(crate) late: Vec<(PackNumber, Vec<ChunkId>)>,
    /// Packs in which content was placed since all changes were in the chain: the journal has this content.
    pub(crate) placed: HashSet<u64>,
}

/// A pack on the way.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) chunks: Vec<Cut>,
    /// The octets of the chunks, for a pack that must go to another group.
    pub(crate) unpacked: Vec<Unpacked>,
    /// The ids of the chunks, as soon as known.
    pub(crate) names: Vec<ChunkId>,
    /// Chunks with the octets of a chunk of this pack: the place of that chunk.
    pub(crate) twins: Vec<(usize, Cut)>,
    pub(crate) group: u16,
    pub(crate) urgency: Urgency,
    pub(crate) copies: Vec<MailCopy>,
    pub(crate) packed: Option<Packed>,
    /// Accounts that are asked to store the pack.
    pub(crate) asked: Vec<u16>,
    /// An account that may have the pack and has not said so.
    pub(crate) doubt: Option<u16>,
    pub(crate) octets: usize,
}

impl Upload {
    /// All cuts that are placed when the pack is stored.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        let twins = self.twins.iter().map(|(_, cut)| cut);
        self.chunks.iter().chain(twins)
    }
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
    /// The content of a file goes on with another inode.
    pub(crate) fn moved(&mut self, from: Inode, to: Inode) {
        let uploads = self.packs.values_mut();
        let chunks = uploads.flat_map(|upload| &mut upload.chunks);
        for cut in chunks.filter(|cut| cut.inode == from) {
            cut.inode = to;
        }
    }

    /// Octets on the way.
    pub(crate) fn octets(&self) -> usize {
        self.packs.values().map(|upload| upload.octets).sum()
    }

    pub(crate) fn count(&self) -> usize {
        self.packs.len()
    }

    /// Whether a pack is on the way.
    pub(crate) fn has(&self, pack: u64) -> bool {
        self.packs.contains_key(&pack)
    }
}
