//! The local disk, for speed alone: hints to chunks, and chunks of earlier reads.

use super::chunk_store::{ChunkStore, Span};
use super::hints::{HintTable, Part};
use crate::format::{ChunkId, Keys, MailId, PackNumber};
use crate::rows::Extent;
use hashbrown::HashMap;
use vere_ports::storage::Storage;
use vere_units::Timestamp;

/// Octets of the table of chunks: entries for 1,392,640 chunks, or 700 GB of long files.
const HINTS_OCTETS: u64 = 64 << 20;
/// The name of the table of chunks.
const HINTS: &str = "hints";

/// The local disk's part of a mount. Without a working disk, nothing is known and nothing kept.
#[derive(Debug)]
pub struct Local<S: Storage> {
    hints: Option<HintTable<S::File>>,
    /// Chunks on the disk; absent without room for chunks.
    pub chunks: Option<ChunkStore<S>>,
    /// Chunks on the way to the disk.
    pub keeping: HashMap<Extent, Keeping<S::File>>,
    keeping_octets: usize,
    /// Octets not sent, because of an equal chunk in the volume.
    shared: u64,
}

/// A chunk on the way to the disk.
#[derive(Debug)]
pub struct Keeping<F> {
    /// The mail of the chunk.
    pub id: MailId,
    /// Where the chunk goes; absent if the disk takes no chunks.
    pub span: Option<Span<F>>,
}

/// How much the local disk may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheTerms {
    /// Octets of chunks.
    pub chunks_max: u64,
    /// Octets of the table of hints.
    pub hints_max: u64,
}

impl CacheTerms {
    /// Room for so many octets of chunks, and a table for 700 GB of long files.
    #[must_use]
    pub const fn of(chunks_max: u64) -> Self {
        Self {
            chunks_max,
            hints_max: HINTS_OCTETS,
        }
    }
}

impl<S: Storage> Local<S> {
    /// Without a disk.
    #[must_use]
    pub fn none() -> Self {
        Self {
            hints: None,
            chunks: None,
            keeping: HashMap::new(),
            keeping_octets: 0,
            shared: 0,
        }
    }

    /// With the tables and chunks of a folder, as far as the disk works.
    pub fn open(storage: &S, terms: CacheTerms, now: Timestamp) -> Self {
        let chunks =
            (terms.chunks_max > 0).then(|| ChunkStore::open(storage, terms.chunks_max, now));
        Self {
            hints: HintTable::open(storage, HINTS, terms.hints_max).ok(),
            chunks: chunks.flatten(),
            ..Self::none()
        }
    }

    /// Octets not sent, because of an equal chunk in the volume.
    #[must_use]
    pub const fn shared(&self) -> u64 {
        self.shared
    }

    /// So many more octets are not sent.
    pub fn shares(&mut self, octets: usize) {
        self.shared = self.shared.saturating_add(octets as u64);
    }

    /// Whether a chunk may go to the disk behind others.
    pub fn begin_keeping(&mut self, octets: usize, max: usize) -> bool {
        let all = self.keeping_octets.saturating_add(octets);
        let has_room = all <= max && (self.hints.is_some() || self.chunks.is_some());
        if has_room {
            self.keeping_octets = all;
        }
        has_room
    }

    /// A chunk is on the disk, or has failed to get there.
    pub fn end_keeping(&mut self, octets: usize) {
        self.keeping_octets = self.keeping_octets.saturating_sub(octets);
    }

    /// The disk goes over to another volume: chunks on the way are kept by nobody.
    #[must_use]
    pub fn hand_over(&mut self) -> Self {
        let mut local = std::mem::replace(self, Self::none());
        local.keeping.clear();
        local.keeping_octets = 0;
        local
    }

    /// The place of a chunk with an id and a length, as far as known.
    #[must_use]
    pub fn chunk(&self, keys: &Keys, name: ChunkId, octets: usize) -> Option<Extent> {
        let hints = self.hints.as_ref()?;
        let value = hints.get(keys, &chunk_key(name, octets))?;
        let extent = extent_of(&value)?;
        let is_trusted = hints.get(keys, &pack_key(extent.pack)).is_none();
        is_trusted.then_some(extent)
    }

    /// A chunk is stored.
    pub fn note(&self, keys: &Keys, name: ChunkId, octets: usize, extent: Extent) {
        if let Some(hints) = &self.hints {
            let [a, b, c, d, e, f, g, h] = extent.pack.0.to_le_bytes();
            let [i, j, k, l] = extent.at.to_le_bytes();
            let [m, n, o, p] = extent.sealed_len.to_le_bytes();
            let value = [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, 0, 0, 0, 0];
            // Without the hint the chunk is sent once more.
            let _absent = hints.put(keys, &chunk_key(name, octets), &value);
        }
    }

    /// Nobody can read a pack: no hint to the pack counts any more.
    pub fn distrust(&self, keys: &Keys, pack: PackNumber) {
        if let Some(hints) = &self.hints {
            // Without the entry, another failed read has another try.
            let _counts = hints.put(keys, &pack_key(pack), &[0; 20]);
        }
    }
}

fn chunk_key(name: ChunkId, octets: usize) -> Part {
    let mut key = [0; 20];
    let (id, length) = key.split_at_mut(16);
    id.copy_from_slice(&name.0);
    length.copy_from_slice(&u32::try_from(octets).unwrap_or(u32::MAX).to_le_bytes());
    key
}

/// No chunk has 0 octets.
fn pack_key(pack: PackNumber) -> Part {
    let mut key = [0; 20];
    let (number, rest) = key.split_at_mut(8);
    // The first octets choose the bucket: numbers of packs are near each other.
    number.copy_from_slice(&pack.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    if let Some(rest) = rest.get_mut(..8) {
        rest.copy_from_slice(&pack.0.to_le_bytes());
    }
    key
}

fn extent_of(value: &Part) -> Option<Extent> {
    let (pack, rest) = value.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let sealed_len = rest.first_chunk()?;
    Some(Extent {
        pack: PackNumber(u64::from_le_bytes(*pack)),
        at: u32::from_le_bytes(*at),
        sealed_len: u32::from_le_bytes(*sealed_len),
    })
}

#[cfg(test)]
mod tests {
    use vere_faults::MemoryDisk;

    use super::*;
    use crate::format::VolumeKey;

    #[test]
    fn hints_to_a_distrusted_pack_do_not_count() {
        let keys = Keys::derive(&VolumeKey([7; 32]));
        let terms = CacheTerms {
            chunks_max: 0,
            hints_max: 64 << 10,
        };
        let local = Local::open(&MemoryDisk::default(), terms, Timestamp::ZERO);
        let extent = |pack| Extent {
            pack: PackNumber(pack),
            at: 70,
            sealed_len: 517,
        };
        local.note(&keys, ChunkId([1; 16]), 500, extent(1));
        local.note(&keys, ChunkId([2; 16]), 500, extent(2));
        assert_eq!(local.chunk(&keys, ChunkId([1; 16]), 500), Some(extent(1)));
        assert_eq!(local.chunk(&keys, ChunkId([1; 16]), 501), None);
        local.distrust(&keys, PackNumber(1));
        assert_eq!(local.chunk(&keys, ChunkId([1; 16]), 500), None);
        assert_eq!(local.chunk(&keys, ChunkId([2; 16]), 500), Some(extent(2)));
        let none = Local::<MemoryDisk>::none();
        none.note(&keys, ChunkId([1; 16]), 500, extent(1));
        assert_eq!(none.chunk(&keys, ChunkId([1; 16]), 500), None);
    }
}
