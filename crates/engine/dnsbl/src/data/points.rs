//! Sorted keys with a small index: single IPv4 addresses, or IPv6 networks of 64 bits.

use super::index::{Index, Key};

/// Listings that one octet per key can tell apart.
const PALETTE_MAX: usize = 256;

/// A set of keys, each with a listing.
#[derive(Debug)]
pub(super) struct Points<K> {
    keys: Vec<K>,
    listings: Listings,
    index: Index,
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

    /// The set of sorted keys without duplicates, each with a listing.
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
        let index = Index::of(&keys);
        Self {
            keys,
            listings,
            index,
        }
    }

    /// The listing of a key.
    pub(super) fn find(&self, key: K) -> Option<u32> {
        let places = self.index.places(key);
        let near = self.keys.get(places.clone())?;
        let place = near.binary_search(&key).ok()?;
        Some(self.listing(places.start + place))
    }

    /// The number of keys from `first` to `last`, both inclusive.
    pub(super) fn count(&self, first: K, last: K) -> usize {
        let end = self.index.count_below(&self.keys, last, true);
        end.saturating_sub(self.index.count_below(&self.keys, first, false))
    }

    /// The keys from `first` to `last`, both inclusive, in order.
    pub(super) fn between(&self, first: K, last: K) -> impl Iterator<Item = K> {
        let start = self.index.count_below(&self.keys, first, false);
        let keys = self.keys.get(start..).unwrap_or_default();
        keys.iter().copied().take_while(move |key| *key <= last)
    }

    /// All keys with their listings, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, u32)> {
        let keys = self.keys.iter().enumerate();
        keys.map(|(place, key)| (*key, self.listing(place)))
    }

    /// The number of points.
    pub(super) const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        let listings = match &self.listings {
            Listings::Same(_) => 0,
            Listings::Octets { each, palette } => each.len() + size_of_val(palette.as_slice()),
            Listings::Words(words) => size_of_val(words.as_slice()),
        };
        size_of_val(self.keys.as_slice()) + self.index.memory() + listings
    }

    fn listing(&self, place: usize) -> u32 {
        match &self.listings {
            Listings::Same(listing) => *listing,
            Listings::Octets { each, palette } => palette[usize::from(each[place])],
            Listings::Words(words) => words[place],
        }
    }
}
