//! A set of domain names, each for itself or for all names below it.

use super::error::Reason;
use super::name::{self, NAME_MAX};
use super::spans::{EXCLUDED, VALUES_MAX};

/// Octets of all names of a dataset at most.
const NAMES_MAX: usize = u32::MAX as usize - NAME_MAX;

/// A name with the place of its octets.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u32,
    length: u8,
    /// Whether the entry is for all names below, and not for the name itself.
    below: bool,
    /// The value while names are read, then the listing.
    listing: u32,
}

/// Names in the order of their reversed labels; while files are read, in the order of the files.
#[derive(Debug, Default)]
pub(super) struct Names {
    octets: Vec<u8>,
    entries: Vec<Entry>,
}

impl Names {
    /// Adds a name, in wire form without the root.
    pub(super) fn add(&mut self, wire: &[u8], below: bool, value: u32) -> Result<(), Reason> {
        if self.octets.len() > NAMES_MAX {
            let expected = format!("at most {NAMES_MAX} octets of names");
            return Err(Reason::bound(expected, "more"));
        }
        let key = name::reversed(wire);
        self.entries.push(Entry {
            start: self.octets.len() as u32,
            length: key.len() as u8,
            below,
            listing: value,
        });
        self.octets.extend_from_slice(&key);
        Ok(())
    }

    /// Sorts the names, and joins the values of each.
    pub(super) fn finish(mut self, mut listing: impl FnMut(&[u32]) -> u32) -> Self {
        let octets = std::mem::take(&mut self.octets);
        let key = |entry: &Entry| slice(&octets, entry);
        self.entries.sort_unstable_by(|one, other| {
            let order = (key(one), one.below).cmp(&(key(other), other.below));
            order.then(one.listing.cmp(&other.listing))
        });
        let mut sorted = Self {
            octets: Vec::with_capacity(octets.len()),
            entries: Vec::with_capacity(self.entries.len()),
        };
        let same = |one: &Entry, other: &Entry| key(one) == key(other) && one.below == other.below;
        let mut values = Vec::new();
        for group in self.entries.chunk_by(same) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            values.clear();
            values.extend(group.iter().map(|entry| entry.listing));
            values.dedup();
            values.truncate(VALUES_MAX);
            let listing = match last.listing {
                EXCLUDED => EXCLUDED,
                _ => listing(&values),
            };
            let start = sorted.octets.len() as u32;
            sorted.octets.extend_from_slice(key(first));
            sorted.entries.push(Entry {
                start,
                listing,
                ..*first
            });
        }
        sorted.octets.shrink_to_fit();
        sorted.entries.shrink_to_fit();
        sorted
    }

    /// The listing of a name, and the name of the winning entry: the name itself, or the closest upper name with
    /// an entry for all names below.
    pub(super) fn find<'n>(&self, wire: &'n [u8]) -> Option<(u32, &'n [u8])> {
        let key = name::reversed(wire);
        let mut found = self.listing(&key, false).map(|listing| (listing, wire));
        let mut entry = wire;
        let mut labels = name::labels(wire);
        while found.is_none() {
            let label = labels.next()?;
            entry = entry.get(label.len()..)?;
            let key = key.get(..entry.len())?;
            found = self.listing(key, true).map(|listing| (listing, entry));
        }
        found.filter(|(listing, _)| *listing != EXCLUDED)
    }

    fn listing(&self, key: &[u8], below: bool) -> Option<u32> {
        let order = |entry: &Entry| (slice(&self.octets, entry), entry.below).cmp(&(key, below));
        let place = self.entries.binary_search_by(order).ok()?;
        self.entries.get(place).map(|entry| entry.listing)
    }

    /// Whether a name of the set lies below a name.
    pub(super) fn any_below(&self, wire: &[u8]) -> bool {
        let key = name::reversed(wire);
        let key = key.as_slice();
        // The entry of the name itself comes first, then its entry for the names below, then these.
        let order = |entry: &Entry| (slice(&self.octets, entry), entry.below) <= (key, false);
        let first = self.entries.partition_point(order);
        let next = self.entries.get(first);
        next.is_some_and(|entry| slice(&self.octets, entry).starts_with(key))
    }

    /// All names in wire form without the root, whether each stands for the names below, and its listing unless it is
    /// excluded.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Vec<u8>, bool, Option<u32>)> {
        self.entries.iter().map(|entry| {
            let listing = (entry.listing != EXCLUDED).then_some(entry.listing);
            let wire = name::reversed(slice(&self.octets, entry));
            (wire, entry.below, listing)
        })
    }

    /// The number of entries, exclusions among them.
    pub(super) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.octets.len() + size_of_val(self.entries.as_slice())
    }
}

fn slice<'o>(octets: &'o [u8], entry: &Entry) -> &'o [u8] {
    let start = entry.start as usize;
    let range = start..start + usize::from(entry.length);
    octets.get(range).unwrap_or_default()
}
