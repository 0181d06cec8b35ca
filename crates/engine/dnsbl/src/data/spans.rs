//! Networks and ranges that may overlap, made disjoint.

use std::collections::BTreeMap;

use super::index::{Index, Key};

/// Values of an address at most, so that an answer can carry all values.
pub(super) const VALUES_MAX: usize = 64;
/// The value of an entry that takes addresses out.
pub(super) const EXCLUDED: u32 = u32::MAX;

/// A full address.
pub(super) trait Address: Key {
    /// The next address, if this is not the last.
    fn next(self) -> Option<Self>;
    /// The address before, if this is not the first.
    fn before(self) -> Option<Self>;
}

impl Address for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    fn before(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

impl Address for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }

    fn before(self) -> Option<Self> {
        self.checked_sub(1)
    }
}

/// A network or range as a file has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<A> {
    /// The first address.
    pub(super) start: A,
    /// The last address.
    pub(super) end: A,
    /// Of the entries of an address only those of the highest level count.
    pub(super) level: u8,
    /// The value, or [`EXCLUDED`].
    pub(super) value: u32,
}

/// Disjoint ranges in order, each with a listing.
#[derive(Debug)]
pub(super) struct Spans<A> {
    starts: Vec<A>,
    ends: Vec<A>,
    listings: Vec<u32>,
    /// The index of the ends.
    index: Index,
}

impl<A: Address> Spans<A> {
    /// Makes entries disjoint. `listing` gives the listing for the values of an address, which are in order.
    pub(super) fn of(entries: Vec<Entry<A>>, mut listing: impl FnMut(&[u32]) -> u32) -> Self {
        let mut spans = Self {
            starts: Vec::new(),
            ends: Vec::new(),
            listings: Vec::new(),
            index: Index::of::<A>(&[]),
        };
        let mut values = Vec::new();
        sweep(entries, |start, end, active| {
            values.clear();
            let Some((&(level, _), _)) = active.last_key_value() else {
                return;
            };
            if active.contains_key(&(level, EXCLUDED)) {
                return;
            }
            let winners = active.range((level, 0)..).map(|((_, value), _)| *value);
            values.extend(winners.take(VALUES_MAX));
            spans.push(start, end, listing(&values));
        });
        spans.starts.shrink_to_fit();
        spans.ends.shrink_to_fit();
        spans.listings.shrink_to_fit();
        spans.index = Index::of(&spans.ends);
        spans
    }

    fn push(&mut self, start: A, end: A, listing: u32) {
        let adjacent = start.before();
        if let (Some(last), Some(same)) = (self.ends.last_mut(), self.listings.last())
            && Some(*last) == adjacent
            && *same == listing
        {
            *last = end;
            return;
        }
        self.starts.push(start);
        self.ends.push(end);
        self.listings.push(listing);
    }

    /// Whether no address is in a range.
    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The listing of an address.
    pub(super) fn find(&self, address: A) -> Option<u32> {
        let (_, _, listing) = self.between(address, address).next()?;
        Some(listing)
    }

    /// The parts of the ranges that lie from `first` to `last`, both inclusive.
    pub(super) fn between(&self, first: A, last: A) -> impl Iterator<Item = (A, A, u32)> {
        let from = self.index.count_below(&self.ends, first, false);
        let ranges = (from..self.starts.len()).map_while(move |place| {
            let start = self.starts[place];
            (start <= last).then(|| (start, self.ends[place], self.listings[place]))
        });
        ranges.map(move |(start, end, listing)| (start.max(first), end.min(last), listing))
    }

    /// All ranges, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (A, A, u32)> {
        let bounds = self.starts.iter().zip(&self.ends);
        let ranges = bounds.zip(&self.listings);
        ranges.map(|((start, end), listing)| (*start, *end, *listing))
    }

    /// The number of ranges.
    pub(super) const fn len(&self) -> usize {
        self.starts.len()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.starts.len() * (2 * size_of::<A>() + size_of::<u32>()) + self.index.memory()
    }
}

/// Goes through all addresses in order, and hands over each part between two bounds of entries, with the level and
/// value of the entries over the part, and how often each occurs.
fn sweep<A: Address>(
    mut entries: Vec<Entry<A>>,
    mut part: impl FnMut(A, A, &BTreeMap<(u8, u32), u32>),
) {
    entries.sort_unstable_by_key(|entry| entry.start);
    let mut ends: Vec<(A, u8, u32)> = entries
        .iter()
        .map(|entry| (entry.end, entry.level, entry.value))
        .collect();
    ends.sort_unstable();
    let mut starts = entries.into_iter().peekable();
    let mut ends = ends.into_iter().peekable();
    let mut active = BTreeMap::new();
    let mut from = None;
    while let Some(&(end, level, value)) = ends.peek() {
        // An end is behind its last address, so that a start at the same address comes first.
        if let Some(entry) = starts.next_if(|entry| entry.start <= end) {
            if let (Some(from), Some(until)) = (from, entry.start.before())
                && from <= until
            {
                part(from, until, &active);
            }
            *active.entry((entry.level, entry.value)).or_insert(0) += 1;
            from = Some(entry.start);
            continue;
        }
        if let Some(from) = from
            && from <= end
        {
            part(from, end, &active);
        }
        if let Some(count) = active.get_mut(&(level, value)) {
            *count -= 1;
            if *count == 0 {
                active.remove(&(level, value));
            }
        }
        from = end.next();
        ends.next();
    }
}
