//! Places of packs on accounts, opened chunks in memory, and the fate of written octets on the way.

use std::collections::BTreeSet;

use bytes::Bytes;
use hashbrown::HashMap;
use lru::LruCache;

#[cfg(test)]
use crate::format::PackNumber;
use crate::format::{MailCopy, MailId};
use crate::merge::Places;
use crate::rows::Extent;

/// A pack that is on accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The mail.
    pub id: MailId,
    /// Its places.
    pub copies: Vec<MailCopy>,
}

/// Opened chunks, least recently used first to go.
#[derive(Debug)]
pub struct ChunkCache {
    chunks: LruCache<Extent, Bytes>,
    octets: usize,
    octets_max: usize,
}

impl ChunkCache {
    /// An empty cache with a bound.
    pub fn new(octets_max: usize) -> Self {
        Self {
            chunks: LruCache::unbounded(),
            octets: 0,
            octets_max,
        }
    }

    /// A chunk, if in memory.
    pub fn get(&mut self, chunk: &Extent) -> Option<Bytes> {
        self.chunks.get(chunk).cloned()
    }

    /// Whether a chunk is in memory.
    pub fn has(&self, chunk: &Extent) -> bool {
        self.chunks.contains(chunk)
    }

    /// A further chunk; the least recently used ones go.
    pub fn put(&mut self, chunk: Extent, octets: Bytes) {
        self.octets = self.octets.saturating_add(octets.len());
        if let Some(old) = self.chunks.put(chunk, octets) {
            self.octets = self.octets.saturating_sub(old.len());
        }
        while self.octets > self.octets_max
            && let Some((_, old)) = self.chunks.pop_lru()
        {
            self.octets = self.octets.saturating_sub(old.len());
        }
    }

    /// Octets in memory.
    pub const fn octets(&self) -> usize {
        self.octets
    }
}

/// Written octets on the way to accounts, or there: the fate of each range of an unsent buffer.
#[derive(Debug, Default)]
pub struct Fates {
    by_buffer: HashMap<u64, Vec<FateRange>>,
}

/// The fate of a range of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FateRange {
    /// Where the range begins.
    pub skip: u32,
    /// Octets of the range.
    pub length: u32,
    /// The fate.
    pub fate: Fate,
}

/// Where a range of a buffer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// In a pack that is being sent.
    Sending(u64),
    /// In a chunk: the octet at the range's beginning is the chunk's at `skip`.
    Placed {
        /// The chunk.
        extent: Extent,
        /// The place in the chunk.
        skip: u32,
    },
}

impl Fates {
    /// A range of a buffer has a fate.
    pub fn set(&mut self, buffer: u64, range: FateRange) {
        let ranges = self.by_buffer.entry(buffer).or_default();
        ranges.retain(|old| !(old.skip == range.skip && old.length == range.length));
        let place = ranges.partition_point(|old| old.skip < range.skip);
        ranges.insert(place, range);
    }

    /// Takes a piece of a buffer apart: ranges without a fate have `None`.
    pub fn of(&self, buffer: u64, skip: u32, length: u32) -> Vec<(u32, u32, Option<Fate>)> {
        let end = skip.saturating_add(length);
        let mut at = skip;
        let mut out = Vec::new();
        for range in self.by_buffer.get(&buffer).into_iter().flatten() {
            let range_end = range.skip.saturating_add(range.length);
            if range_end <= at || range.skip >= end {
                continue;
            }
            if range.skip > at {
                out.push((at, range.skip.saturating_sub(at), None));
                at = range.skip;
            }
            let until = range_end.min(end);
            let fate = match range.fate {
                Fate::Placed { extent, skip } => Fate::Placed {
                    extent,
                    skip: skip.saturating_add(at.saturating_sub(range.skip)),
                },
                sending @ Fate::Sending(_) => sending,
            };
            out.push((at, until.saturating_sub(at), Some(fate)));
            at = until;
        }
        if at < end {
            out.push((at, end.saturating_sub(at), None));
        }
        out
    }

    /// The packs of chunks that have their place.
    pub fn packs(&self) -> impl Iterator<Item = u64> + '_ {
        let ranges = self.by_buffer.values().flatten();
        ranges.filter_map(|range| match range.fate {
            Fate::Placed { extent, .. } => Some(extent.pack.0),
            Fate::Sending(_) => None,
        })
    }

    /// These packs are lost: octets placed there have no fate any more.
    pub fn forget(&mut self, packs: &BTreeSet<u64>) {
        let is_lost = |range: &FateRange| match range.fate {
            Fate::Placed { extent, .. } => packs.contains(&extent.pack.0),
            Fate::Sending(_) => false,
        };
        for ranges in self.by_buffer.values_mut() {
            ranges.retain(|range| !is_lost(range));
        }
    }

    /// Another mount has moved chunks.
    pub fn relocate(&mut self, places: &Places) {
        for range in self.by_buffer.values_mut().flatten() {
            if let Fate::Placed { extent, .. } = &mut range.fate
                && let Some(place) = places.get(extent)
            {
                *extent = *place;
            }
        }
    }

    /// Forgets buffers without a reference.
    pub fn retain(&mut self, is_live: impl Fn(u64) -> bool) {
        self.by_buffer.retain(|buffer, _| is_live(*buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(at: u32, skip: u32) -> Fate {
        let extent = Extent {
            pack: PackNumber(1),
            at,
            sealed_len: 9,
        };
        Fate::Placed { extent, skip }
    }

    #[test]
    fn pieces_fall_apart_by_fate() {
        let mut fates = Fates::default();
        let sending = FateRange {
            skip: 10,
            length: 10,
            fate: Fate::Sending(1),
        };
        fates.set(7, sending);
        fates.set(
            7,
            FateRange {
                skip: 30,
                length: 5,
                fate: placed(68, 100),
            },
        );
        assert_eq!(
            fates.of(7, 5, 28),
            [
                (5, 5, None),
                (10, 10, Some(Fate::Sending(1))),
                (20, 10, None),
                (30, 3, Some(placed(68, 100))),
            ]
        );
        assert_eq!(
            fates.of(7, 31, 9),
            [(31, 4, Some(placed(68, 101))), (35, 5, None)]
        );
        fates.set(
            7,
            FateRange {
                fate: placed(200, 0),
                ..sending
            },
        );
        assert_eq!(fates.of(7, 12, 2), [(12, 2, Some(placed(200, 2)))]);
        assert_eq!(fates.of(8, 0, 1), [(0, 1, None)]);
        fates.retain(|_| false);
        assert_eq!(fates.of(7, 12, 2), [(12, 2, None)]);
    }

    #[test]
    fn the_cache_stays_within_its_octets() {
        let mut cache = ChunkCache::new(100);
        for at in 0..10 {
            cache.put(
                Extent {
                    pack: PackNumber(1),
                    at,
                    sealed_len: 0,
                },
                Bytes::from(vec![0; 30]),
            );
            assert!(cache.octets() <= 100);
        }
        let chunk = |at| Extent {
            pack: PackNumber(1),
            at,
            sealed_len: 0,
        };
        assert_eq!(
            [5, 6, 7, 9].map(|at| cache.has(&chunk(at))),
            [false, false, true, true]
        );
        cache.put(chunk(9), Bytes::from(vec![0; 10]));
        assert_eq!(cache.octets(), 70);
    }
}
