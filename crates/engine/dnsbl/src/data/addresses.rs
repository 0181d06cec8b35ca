//! A set of addresses of one family: single points apart from networks and ranges, so that a point needs few octets.

use super::index::Key;
use super::points::Points;
use super::spans::{Address, EXCLUDED, Entry, Spans, VALUES_MAX};

/// What sets IPv4 and IPv6 apart.
pub(super) trait Family {
    /// The upper bits of an address that are stored singly: all of IPv4, 64 of IPv6.
    type Point: Key + Into<u128>;
    /// A full address.
    type Address: Address + Into<u128>;
    /// Bits of an address below its point.
    const BELOW: u32;
    /// The level of a point among the entries.
    const LEVEL: u8;

    /// The point of an address.
    fn point(address: Self::Address) -> Self::Point;
    /// The first and the last address of a point.
    fn bounds(point: Self::Point) -> (Self::Address, Self::Address);
}

/// IPv4: points are single addresses.
#[derive(Debug)]
pub(super) struct V4;

impl Family for V4 {
    type Point = u32;
    type Address = u32;
    const BELOW: u32 = 0;
    const LEVEL: u8 = 32;

    fn point(address: u32) -> u32 {
        address
    }

    fn bounds(point: u32) -> (u32, u32) {
        (point, point)
    }
}

/// IPv6: points are networks of 64 bits.
#[derive(Debug)]
pub(super) struct V6;

impl Family for V6 {
    type Point = u64;
    type Address = u128;
    const BELOW: u32 = 64;
    const LEVEL: u8 = 64;

    fn point(address: u128) -> u64 {
        (address >> Self::BELOW) as u64
    }

    fn bounds(point: u64) -> (u128, u128) {
        let first = u128::from(point) << Self::BELOW;
        (first, first | u128::from(u64::MAX))
    }
}

/// Points as they are read: a list of bare keys while all have the same value.
#[derive(Debug)]
enum Read<K> {
    Same(Vec<K>, u32),
    Each(Vec<(K, u32)>),
}

/// Entries of one family as they are read.
#[derive(Debug)]
pub(super) struct Loading<F: Family> {
    points: Read<F::Point>,
    entries: Vec<Entry<F::Address>>,
}

impl<F: Family> Default for Loading<F> {
    fn default() -> Self {
        Self {
            points: Read::Same(Vec::new(), 0),
            entries: Vec::new(),
        }
    }
}

/// How several entries of the same point are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// All values count, and an exclusion beats them: sets.
    All,
    /// The first entry counts: tries.
    First,
}

impl<F: Family> Loading<F> {
    /// Adds a point.
    pub(super) fn point(&mut self, point: F::Point, value: u32) {
        match &mut self.points {
            Read::Same(points, same) if *same == value => points.push(point),
            Read::Same(points, same) if points.is_empty() => {
                points.push(point);
                *same = value;
            }
            Read::Same(points, same) => {
                let same = *same;
                let mut each: Vec<_> = points.drain(..).map(|point| (point, same)).collect();
                each.push((point, value));
                self.points = Read::Each(each);
            }
            Read::Each(points) => points.push((point, value)),
        }
    }

    /// Adds a network or range.
    pub(super) fn entry(&mut self, entry: Entry<F::Address>) {
        self.entries.push(entry);
    }

    /// The set of all entries. `listing` gives the listing for the values of an address, which are in order.
    pub(super) fn finish(
        mut self,
        joined: Joined,
        mut listing: impl FnMut(&[u32]) -> u32,
    ) -> Addresses<F> {
        if joined == Joined::First {
            self.first_of_each();
        }
        let narrow = self.narrow();
        if let (Read::Same(points, value), true) = (&mut self.points, narrow.is_empty())
            && *value != EXCLUDED
        {
            let listing_of_all = listing(&[*value]);
            let points = std::mem::take(points);
            return Addresses {
                points: Points::of_one(points, listing_of_all),
                holes: Points::of_one(Vec::new(), 0),
                spans: Spans::of(self.entries, listing),
            };
        }
        let mut points = match self.points {
            Read::Same(points, value) => points.into_iter().map(|point| (point, value)).collect(),
            Read::Each(points) => points,
        };
        match joined {
            Joined::All => points.sort_unstable(),
            Joined::First => {
                points.sort_by_key(|(point, _)| *point);
                points.dedup_by_key(|(point, _)| *point);
            }
        }
        take_covered::<F>(&mut points, &narrow, &mut self.entries);
        let spans = Spans::of(self.entries, &mut listing);
        let (points, holes) = join(points, listing, |point| {
            let (first, last) = F::bounds(point);
            spans.between(first, last).next().is_some()
        });
        Addresses {
            points: Points::of_many(points),
            holes: Points::of_one(holes, 0),
            spans,
        }
    }

    /// Keeps the first of several entries of a network.
    fn first_of_each(&mut self) {
        self.entries.sort_by_key(|entry| (entry.start, entry.level));
        self.entries
            .dedup_by_key(|entry| (entry.start, entry.level));
    }

    /// The disjoint ranges of all entries with the level of a point, or a higher level.
    fn narrow(&self) -> Spans<F::Address> {
        let narrow = self.entries.iter().filter(|entry| entry.level >= F::LEVEL);
        let plain = narrow.map(|entry| Entry { value: 0, ..*entry });
        Spans::of(plain.collect(), |_| 0)
    }
}

/// Moves points below narrow entries to the entries, so that points and narrow entries lie apart.
fn take_covered<F: Family>(
    points: &mut Vec<(F::Point, u32)>,
    narrow: &Spans<F::Address>,
    entries: &mut Vec<Entry<F::Address>>,
) {
    if narrow.is_empty() {
        return;
    }
    points.retain(|(point, value)| {
        let (start, end) = F::bounds(*point);
        let covered = narrow.between(start, end).next().is_some();
        if covered {
            entries.push(Entry {
                start,
                end,
                level: F::LEVEL,
                value: *value,
            });
        }
        !covered
    });
}

/// One listing for each of the sorted points, and the points that are excluded from a range.
fn join<K: Key>(
    points: Vec<(K, u32)>,
    mut listing: impl FnMut(&[u32]) -> u32,
    in_range: impl Fn(K) -> bool,
) -> (Vec<(K, u32)>, Vec<K>) {
    let mut holes = Vec::new();
    let mut kept: Vec<(K, u32)> = Vec::with_capacity(points.len());
    let mut values = Vec::new();
    for same in points.chunk_by(|one, other| one.0 == other.0) {
        let Some((point, _)) = same.first() else {
            continue;
        };
        values.clear();
        values.extend(same.iter().map(|(_, value)| *value));
        // The exclusion is the greatest value, and the points are sorted.
        if same.last().is_some_and(|(_, value)| *value == EXCLUDED) {
            if in_range(*point) {
                holes.push(*point);
            }
            continue;
        }
        values.dedup();
        values.truncate(VALUES_MAX);
        kept.push((*point, listing(&values)));
    }
    (kept, holes)
}

/// The addresses of one family.
#[derive(Debug)]
pub(super) struct Addresses<F: Family> {
    points: Points<F::Point>,
    /// Points that are excluded from the spans.
    holes: Points<F::Point>,
    spans: Spans<F::Address>,
}

impl<F: Family> Addresses<F> {
    /// The listing of an address.
    pub(super) fn find(&self, address: F::Address) -> Option<u32> {
        let point = F::point(address);
        if let Some(listing) = self.points.find(point) {
            return Some(listing);
        }
        let listing = self.spans.find(address)?;
        self.holes.find(point).is_none().then_some(listing)
    }

    /// Whether an address from `first` to `last` is listed.
    pub(super) fn any_between(&self, first: F::Address, last: F::Address) -> bool {
        let (from, until) = (F::point(first), F::point(last));
        if self.points.between(from, until).next().is_some() {
            return true;
        }
        self.spans.between(first, last).any(|(start, end, _)| {
            let holes = self.holes.count(F::point(start), F::point(end));
            let covered = (holes as u128) << F::BELOW;
            covered <= end.into() - start.into()
        })
    }

    /// Calls a function for each listed or excluded part of the addresses between two points; later parts win.
    pub(super) fn parts(
        &self,
        first: F::Point,
        last: F::Point,
        mut part: impl FnMut(F::Address, F::Address, bool),
    ) {
        let ((start, _), (_, end)) = (F::bounds(first), F::bounds(last));
        for (start, end, _) in self.spans.between(start, end) {
            part(start, end, true);
        }
        for (points, listed) in [(&self.holes, false), (&self.points, true)] {
            for point in points.between(first, last) {
                let (start, end) = F::bounds(point);
                part(start, end, listed);
            }
        }
    }

    /// Calls a function for each range of listed addresses, in order, with its listing. Ranges do not overlap, and
    /// neighbours with equal listings are joined.
    pub(super) fn each(&self, range: impl FnMut(F::Address, F::Address, u32)) {
        let mut joined = JoinedRanges { last: None, range };
        let mut cuts = self.cuts().peekable();
        // The first address behind a point that has reached beyond a range.
        let mut from = None;
        for (start, end, listing) in self.spans.iter() {
            let mut start = Some(from.map_or(start, |from| start.max(from)));
            while let Some((first, last, own)) = cuts.next_if(|(first, _, _)| *first <= end) {
                joined.part(start, first.before(), Some(listing));
                joined.part(Some(first), Some(last), own);
                start = match (start, last.next()) {
                    (Some(start), Some(next)) => Some(start.max(next)),
                    (_, next) => next,
                };
                from = start;
            }
            joined.part(start, Some(end), Some(listing));
        }
        for (first, last, own) in cuts {
            joined.part(Some(first), Some(last), own);
        }
        joined.finish();
    }

    /// Points and holes in order, as ranges; a hole has no listing.
    fn cuts(&self) -> impl Iterator<Item = (F::Address, F::Address, Option<u32>)> {
        let mut points = self.points.iter().peekable();
        let mut holes = self.holes.iter().peekable();
        std::iter::from_fn(move || {
            let hole_first = match (points.peek(), holes.peek()) {
                (Some((point, _)), Some((hole, _))) => hole < point,
                (None, Some(_)) => true,
                _ => false,
            };
            let (point, listing) = match hole_first {
                true => holes.next().map(|(hole, _)| (hole, None))?,
                false => points
                    .next()
                    .map(|(point, listing)| (point, Some(listing)))?,
            };
            let (first, last) = F::bounds(point);
            Some((first, last, listing))
        })
    }

    /// The number of listed points and ranges.
    pub(super) const fn len(&self) -> usize {
        self.points.len() + self.spans.len()
    }

    /// Octets of memory.
    pub(super) fn memory(&self) -> usize {
        self.points.memory() + self.holes.memory() + self.spans.memory()
    }
}

/// Ranges in order; neighbours with equal listings are joined.
struct JoinedRanges<A, R> {
    last: Option<(A, A, u32)>,
    range: R,
}

impl<A: Address, R: FnMut(A, A, u32)> JoinedRanges<A, R> {
    /// Takes the next range, unless it has no address or no listing.
    fn part(&mut self, start: Option<A>, end: Option<A>, listing: Option<u32>) {
        let (Some(start), Some(end), Some(listing)) = (start, end, listing) else {
            return;
        };
        if start > end {
            return;
        }
        if let Some((_, last, same)) = &mut self.last
            && last.next() == Some(start)
            && *same == listing
        {
            *last = end;
            return;
        }
        if let Some((start, end, listing)) = self.last.replace((start, end, listing)) {
            (self.range)(start, end, listing);
        }
    }

    fn finish(mut self) {
        if let Some((start, end, listing)) = self.last.take() {
            (self.range)(start, end, listing);
        }
    }
}
