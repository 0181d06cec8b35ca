//! A small index of sorted numbers by their upper bits.

use std::fmt;
use std::ops::Range;

/// Upper bits that the index tells apart at most: its octets fit into a cache of the processor.
const BITS_MAX: u32 = 18;
/// Keys that share a place of the index, about: a few lines of the cache.
const KEYS_PER_PLACE: usize = 32;

/// An unsigned number: an address, or the upper half of an IPv6 address.
pub(super) trait Key: Copy + Ord + fmt::Debug {
    /// Bits of the number.
    const WIDTH: u32;
    /// The upper bits, as a place of an index.
    fn place(self, shift: u32) -> usize;
}

impl Key for u32 {
    const WIDTH: Self = 32;

    fn place(self, shift: u32) -> usize {
        self.checked_shr(shift).unwrap_or(0) as usize
    }
}

impl Key for u64 {
    const WIDTH: u32 = 64;

    fn place(self, shift: u32) -> usize {
        self.checked_shr(shift).unwrap_or(0) as usize
    }
}

impl Key for u128 {
    const WIDTH: u32 = 128;

    fn place(self, shift: u32) -> usize {
        self.checked_shr(shift).unwrap_or(0) as usize
    }
}

/// For each value of the upper bits the number of keys below: the keys of a place lie between two neighbours.
#[derive(Debug)]
pub(super) struct Index {
    below: Vec<u32>,
    shift: u32,
}

impl Index {
    /// The index of sorted keys.
    pub(super) fn of<K: Key>(keys: &[K]) -> Self {
        let bits = (keys.len() / KEYS_PER_PLACE)
            .checked_ilog2()
            .map_or(0, |bits| bits.min(BITS_MAX));
        let shift = K::WIDTH - bits;
        let mut below = vec![0; (1 << bits) + 1];
        for key in keys {
            below[key.place(shift) + 1] += 1;
        }
        let mut sum = 0;
        for count in &mut below {
            sum += *count;
            *count = sum;
        }
        Self { below, shift }
    }

    /// Where the keys lie that share the upper bits of a key.
    pub(super) fn places<K: Key>(&self, key: K) -> Range<usize> {
        let place = key.place(self.shift);
        let bound = |place: usize| self.below.get(place).map_or(0, |below| *below as usize);
        bound(place)..bound(place + 1)
    }

    /// The number of keys that are not above (`inclusive`), or that are below another.
    pub(super) fn count_below<K: Key>(&self, keys: &[K], key: K, inclusive: bool) -> usize {
        let places = self.places(key);
        let near = keys.get(places.clone()).unwrap_or_default();
        let below = match inclusive {
            true => near.partition_point(|other| *other <= key),
            false => near.partition_point(|other| *other < key),
        };
        places.start + below
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        size_of_val(self.below.as_slice())
    }
}
