//! Packs on the way.

use crate::content::{CHUNK_MAX, Piece, Source, UnsentId};
use crate::format::{ChunkId, MailCopy, PackNumber};
use hashbrown::{HashMap, HashSet};
use vere_ports::files::Inode;
use vere_ports::mail_accounts::Urgency;
use vere_sealing::job::{Packed, Unpacked};

/// Octets of a pack's chunks with which a pack takes no further chunk: packs of long files have 1 MiB on average, and none has more
/// than a mail may have, since a chunk has 2 MiB at most.
pub const PACK_FULL: usize = 768 << 10;
/// Octets of a pack's chunks, at most.
pub const PACK_MAX: usize = PACK_FULL + CHUNK_MAX;
/// Chunks of a pack or a commit: below the frames that a mail may have.
pub const CHUNKS_MAX: usize = 4_000;

/// Packs on the way.
#[derive(Debug, Default)]
pub struct Uploads {
    /// The packs, by number.
    pub packs: HashMap<u64, Upload>,
    /// Chunks on the way: the pack, and the chunk's place among the pack's chunks.
    pub coming: HashMap<ChunkId, (u64, usize)>,
    /// Packs whose chunks have ids, and wait for rows that tell whether the volume has the chunks.
    pub late: Vec<(PackNumber, Vec<ChunkId>)>,
    /// Packs in which content was placed since all changes were in the chain: the journal has this content.
    pub placed: HashSet<u64>,
}

/// A pack on the way.
#[derive(Debug)]
pub struct Upload {
    /// The chunks.
    pub chunks: Vec<Cut>,
    /// The octets of the chunks, for a pack that must go to another group.
    pub unpacked: Vec<Unpacked>,
    /// The ids of the chunks, as soon as known.
    pub names: Vec<ChunkId>,
    /// Chunks with the octets of a chunk of this pack: the place of that chunk.
    pub twins: Vec<(usize, Cut)>,
    /// The group whose accounts get the pack.
    pub group: u16,
    /// The urgency of its requests.
    pub urgency: Urgency,
    /// Copies that accounts have.
    pub copies: Vec<MailCopy>,
    /// The mails, as soon as made.
    pub packed: Option<Packed>,
    /// Accounts that are asked to store the pack.
    pub asked: Vec<u16>,
    /// An account that may have the pack and has not said so.
    pub doubt: Option<u16>,
    /// Octets of the chunks.
    pub octets: usize,
}

impl Upload {
    /// All cuts that are placed when the pack is stored.
    pub fn cuts(&self) -> impl Iterator<Item = &Cut> {
        let twins = self.twins.iter().map(|(_, cut)| cut);
        self.chunks.iter().chain(twins)
    }

    /// A further chunk.
    pub fn add(&mut self, cut: Cut, unpacked: Unpacked, name: ChunkId) {
        self.chunks.push(cut);
        self.unpacked.push(unpacked);
        self.names.push(name);
    }
}

/// A chunk, and the ranges of buffers in it.
#[derive(Debug, Clone)]
pub struct Cut {
    /// The file.
    pub inode: Inode,
    /// The place in the file.
    pub offset: u64,
    /// Buffer, octets to skip, length.
    pub ranges: Vec<(u64, u32, u32)>,
}

impl Cut {
    /// The ranges as pieces of the file.
    pub fn pieces(&self) -> Vec<Piece> {
        let piece = |(id, skip, length): &(u64, u32, u32)| Piece {
            length: *length,
            source: Source::Unsent {
                id: UnsentId(*id),
                skip: *skip,
            },
        };
        self.ranges.iter().map(piece).collect()
    }

    /// The length.
    pub fn octets(&self) -> usize {
        let lengths = self.ranges.iter().map(|(_, _, length)| *length);
        lengths.fold(0, |sum, length| {
            sum.saturating_add(usize::try_from(length).unwrap_or(0))
        })
    }
}

impl Uploads {
    /// The content of a file goes on with another inode.
    pub fn moved(&mut self, from: Inode, to: Inode) {
        let uploads = self.packs.values_mut();
        let chunks = uploads.flat_map(|upload| &mut upload.chunks);
        for cut in chunks.filter(|cut| cut.inode == from) {
            cut.inode = to;
        }
    }

    /// Octets on the way.
    pub fn octets(&self) -> usize {
        self.packs.values().map(|upload| upload.octets).sum()
    }

    /// Packs on the way.
    pub fn count(&self) -> usize {
        self.packs.len()
    }

    /// Whether a pack is on the way.
    pub fn has(&self, pack: u64) -> bool {
        self.packs.contains_key(&pack)
    }
}
