//! Sorted keys with a small index: single IPv4 addresses, or IPv6 networks of 64 bits.

use std::fmt;

/// A key has at least this number of bits above those that the index leaves to the search.
const INDEX_BITS_MAX: u32 = 18;
/// Keys that share a place of the index, about: a few lines of the processor's cache.
const KEYS_PER_PLACE: usize = 32;
/// Listings that one octet per key can tell apart.
const PALETTE_MAX: usize = 256;

/// An unsigned number: a single address, or the upper half of an IPv6 address.
pub(super) trait Key: Copy + Ord + fmt::Debug {
    /// Bits of the number.
    const WIDTH: u32;
    /// The upper bits, as a place of an index.
    fn place(self, shift: u32) -> usize;
}

impl Key for u32 {
    const WIDTH: u32 = Self::BITS;

    fn place(self, shift: u32) -> usize {
        self.checked_shr(shift).unwrap_or(0) as usize
    }
}

impl Key for u64 {
    const WIDTH: u32 = Self::BITS;

    fn place(self, shift: u32) -> usize {
        self.checked_shr(shift).unwrap_or(0) as usize
    }
}

/// A set of keys, each with a listing.
#[derive(Debug)]
pub(super) struct Points<K> {
    keys: Vec<K>,
    listings: Listings,
    /// For each value of the upper bits the number of keys below: the keys of a place lie between two neighbours.
    index: Vec<u32>,
    shift: u32,
}

/// The listing of each key, in the order of the keys, in as few octets as the number of different listings allows.
#[derive(Debug)]
enum Listings {
    Same(u32),
    Octets { each: Vec<u8>, palette: Vec<u32> },
    Words(Vec<u32>),
}

impl<K: Key> Points<K> {
    /// The set of keys that all have the same listing; the keys may have any order and be there twice.
    pub(super) fn of_one(mut keys: Vec<K>, listing: u32) -> Self {
        keys.sort_unstable();
        keys.dedup();
        keys.shrink_to_fit();
        Self::indexed(keys, Listings::Same(listing))
    }

    /// The set of sorted keys without duplicates, each with its listing.
    pub(super) fn of_many(points: Vec<(K, u32)>) -> Self {
        let mut palette: Vec<u32> = Vec::new();
        for (_, listing) in &points {
            if let Err(place) = palette.binary_search(listing) {
                palette.insert(place, *listing);
                if palette.len() > PALETTE_MAX {
                    break;
                }
            }
        }
        let keys = points.iter().map(|(key, _)| *key).collect();
        let listings = match palette.as_slice() {
            [] => Listings::Same(0),
            [one] => Listings::Same(*one),
            several if several.len() <= PALETTE_MAX => {
                let octet = |listing: &u32| palette.partition_point(|other| other < listing) as u8;
                let each = points.iter().map(|(_, listing)| octet(listing)).collect();
                Listings::Octets { each, palette }
            }
            _ => Listings::Words(points.iter().map(|(_, listing)| *listing).collect()),
        };
        Self::indexed(keys, listings)
    }

    fn indexed(keys: Vec<K>, listings: Listings) -> Self {
        let bits = (keys.len() / KEYS_PER_PLACE)
            .checked_ilog2()
            .map_or(0, |bits| bits.min(INDEX_BITS_MAX));
        let shift = K::WIDTH - bits;
        let mut index = vec![0; (1 << bits) + 1];
        for key in &keys {
            index[key.place(shift) + 1] += 1;
        }
        let mut below = 0;
        for count in &mut index {
            below += *count;
            *count = below;
        }
        Self {
            keys,
            listings,
            index,
            shift,
        }
    }

    /// The listing of a key.
    pub(super) fn find(&self, key: K) -> Option<u32> {
        let (start, keys) = self.neighbours(key);
        let place = keys.binary_search(&key).ok()?;
        Some(self.listing(start + place))
    }

    /// Where the keys from `first` to `last` lie, both inclusive.
    pub(super) fn between(&self, first: K, last: K) -> std::ops::Range<usize> {
        let (start, keys) = self.neighbours(first);
        let start = start + keys.partition_point(|key| *key < first);
        let (end, keys) = self.neighbours(last);
        start..end + keys.partition_point(|key| *key <= last)
    }

    /// The keys in a part of the set.
    pub(super) fn keys(&self, part: std::ops::Range<usize>) -> &[K] {
        self.keys.get(part).unwrap_or_default()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        let listings = match &self.listings {
            Listings::Same(_) => 0,
            Listings::Octets { each, palette } => each.len() + size_of_val(palette.as_slice()),
            Listings::Words(words) => size_of_val(words.as_slice()),
        };
        size_of_val(self.keys.as_slice()) + size_of_val(self.index.as_slice()) + listings
    }

    /// The keys that share the upper bits of a key, and the number of keys below them.
    fn neighbours(&self, key: K) -> (usize, &[K]) {
        let place = key.place(self.shift);
        let start = self.index[place] as usize;
        let end = self.index[place + 1] as usize;
        (start, &self.keys[start..end])
    }

    fn listing(&self, place: usize) -> u32 {
        match &self.listings {
            Listings::Same(listing) => *listing,
            Listings::Octets { each, palette } => palette[usize::from(each[place])],
            Listings::Words(words) => words[place],
        }
    }
}
