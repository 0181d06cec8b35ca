//! Sets of UIDs, and the sequence sets written by clients.

use std::fmt;

use crate::Uid;

/// A set of UIDs as ranges, so that a mailbox of a million messages without gaps takes eight octets.
///
/// ```
/// use vere_imap::set::UidSet;
///
/// let set: UidSet = [1, 2, 3, 7].into_iter().collect();
/// assert_eq!(set.to_string(), "1:3,7");
/// assert_eq!(set.len(), 4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UidSet {
    /// Sorted, disjoint, with gaps between the ranges.
    ranges: Vec<(Uid, Uid)>,
}

impl UidSet {
    /// A set without members.
    #[must_use]
    pub const fn new() -> Self {
        Self { ranges: Vec::new() }
    }

    /// All from `first` to `last`, both included; nothing when `first` is greater.
    #[must_use]
    pub fn range(first: Uid, last: Uid) -> Self {
        let mut set = Self::new();
        set.insert_range(first, last);
        set
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.ranges.iter().fold(0, |sum: u32, (first, last)| {
            sum.saturating_add(last.saturating_sub(*first).saturating_add(1))
        })
    }

    /// The ranges, first and last included, in order.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = (Uid, Uid)> + '_ {
        self.ranges.iter().copied()
    }

    /// The members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Uid> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The least member.
    #[must_use]
    pub fn first(&self) -> Option<Uid> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// The greatest member.
    #[must_use]
    pub fn last(&self) -> Option<Uid> {
        self.ranges.last().map(|(_, last)| *last)
    }

    /// Whether `uid` is a member.
    #[must_use]
    pub fn contains(&self, uid: Uid) -> bool {
        let behind = self.ranges.partition_point(|(first, _)| *first <= uid);
        behind
            .checked_sub(1)
            .and_then(|index| self.ranges.get(index))
            .is_some_and(|(_, last)| uid <= *last)
    }

    /// Adds a UID; in rising order the insertion takes constant time.
    pub fn insert(&mut self, uid: Uid) {
        self.insert_range(uid, uid);
    }

    /// Adds all from `first` to `last`; zero is never a member.
    pub fn insert_range(&mut self, first: Uid, last: Uid) {
        let first = first.max(1);
        if first > last {
            return;
        }
        match self.ranges.last_mut() {
            Some((_, end)) if first > *end => {
                match end.checked_add(1) == Some(first) {
                    true => *end = last,
                    false => self.ranges.push((first, last)),
                }
                return;
            }
            _ => {}
        }
        // Ranges that end before the new range and do not touch it are kept, as are the ranges behind.
        let begin = self
            .ranges
            .partition_point(|(_, end)| end.saturating_add(1) < first);
        let behind = self
            .ranges
            .partition_point(|(start, _)| *start <= last.saturating_add(1));
        let touched = self.ranges.get(begin..behind).unwrap_or_default();
        let first = touched
            .first()
            .map_or(first, |(start, _)| first.min(*start));
        let last = touched.last().map_or(last, |(_, end)| last.max(*end));
        self.ranges
            .splice(begin..behind.max(begin), [(first, last)]);
    }

    /// The members of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (
            self.ranges.iter().peekable(),
            other.ranges.iter().peekable(),
        );
        let mut ranges = Vec::new();
        while let (Some(&&(a, b)), Some(&&(c, d))) = (left.peek(), right.peek()) {
            let (first, last) = (a.max(c), b.min(d));
            if first <= last {
                ranges.push((first, last));
            }
            if b <= d {
                left.next();
            } else {
                right.next();
            }
        }
        Self { ranges }
    }

    /// The members outside `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let mut others = other.ranges.iter().peekable();
        for &(first, last) in &self.ranges {
            let mut next = Some(first);
            while let Some(from) = next.filter(|from| *from <= last) {
                while others.peek().is_some_and(|(_, end)| *end < from) {
                    others.next();
                }
                next = match others.peek() {
                    Some(&&(start, end)) if start <= last => {
                        if start > from {
                            ranges.push((from, start.saturating_sub(1)));
                        }
                        end.checked_add(1)
                    }
                    _ => {
                        ranges.push((from, last));
                        None
                    }
                };
            }
        }
        Self { ranges }
    }

    /// Adds the members of `other`.
    pub fn extend_from(&mut self, other: &Self) {
        for (first, last) in other.ranges() {
            self.insert_range(first, last);
        }
    }

    /// Takes the first `count` members out.
    #[must_use]
    pub fn split_front(&mut self, count: u32) -> Self {
        let (mut front, mut left) = (Self::new(), count);
        while let Some(&(first, last)) = self.ranges.first() {
            let here = last.saturating_sub(first).saturating_add(1);
            if left == 0 {
                break;
            }
            if here <= left {
                front.insert_range(first, last);
                self.ranges.remove(0);
                left = left.saturating_sub(here);
            } else {
                let end = first.saturating_add(left);
                front.insert_range(first, end.saturating_sub(1));
                if let Some(range) = self.ranges.first_mut() {
                    range.0 = end;
                }
                left = 0;
            }
        }
        front
    }

    /// Octets of memory held.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.ranges
            .capacity()
            .saturating_mul(size_of::<(Uid, Uid)>())
    }
}

impl FromIterator<Uid> for UidSet {
    fn from_iter<I: IntoIterator<Item = Uid>>(uids: I) -> Self {
        let mut set = Self::new();
        uids.into_iter().for_each(|uid| set.insert(uid));
        set
    }
}

impl fmt::Display for UidSet {
    /// Writes `1:3,7`; the empty text for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if first == last {
                write!(f, "{first}")?;
            } else {
                write!(f, "{first}:{last}")?;
            }
        }
        Ok(())
    }
}

/// One end of a range in a sequence set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeqNumber {
    /// A number, not zero.
    Value(u32),
    /// `*`: the greatest number in use.
    Largest,
}

/// A set as a client writes it, of message numbers or of UIDs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceSet {
    /// Ranges, with the greater end first or last.
    Ranges(Vec<(SeqNumber, SeqNumber)>),
    /// `$`: the result saved by the last SEARCH (RFC 5182).
    Saved,
}

impl SequenceSet {
    /// Whether the set is ranges up to `*` alone, like `1:*`: every message from a number on, possibly no
    /// message.
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        use SeqNumber::{Largest, Value};
        let is_open = |range: &_| matches!(range, (Value(_), Largest) | (Largest, Value(_)));
        matches!(self, Self::Ranges(ranges) if ranges.iter().all(is_open))
    }

    /// The numbers of the set, where `largest` is the greatest number in use; written numbers beyond
    /// `largest` are kept.
    #[must_use]
    pub fn resolve(&self, largest: u32) -> UidSet {
        let value = |number: SeqNumber| match number {
            SeqNumber::Value(value) => value,
            SeqNumber::Largest => largest,
        };
        let mut set = UidSet::new();
        if let Self::Ranges(ranges) = self {
            let ends = ranges
                .iter()
                .map(|&(one, other)| (value(one), value(other)));
            let mut ends: Vec<_> = ends.map(|(a, b)| (a.min(b), a.max(b))).collect();
            // A client may name a hundred thousand, the greatest first.
            ends.sort_unstable();
            for (first, last) in ends {
                set.insert_range(first, last);
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(members: &BTreeSet<u32>) -> UidSet {
        members.iter().copied().collect()
    }

    fn members() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(1..60u32, 0..40)
    }

    proptest! {
        #[test]
        fn is_a_set(a in members(), b in members(), probe in 0..62u32) {
            let (x, y) = (set(&a), set(&b));
            prop_assert_eq!(x.iter().collect::<BTreeSet<_>>(), a.clone());
            prop_assert_eq!(x.len() as usize, a.len());
            prop_assert_eq!(x.contains(probe), a.contains(&probe));
            prop_assert_eq!(x.intersection(&y), set(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(x.difference(&y), set(&a.difference(&b).copied().collect()));
            let mut both = x.clone();
            both.extend_from(&y);
            prop_assert_eq!(both, set(&a.union(&b).copied().collect()));
        }

        #[test]
        fn order_of_insertion_is_of_no_matter(mut uids in proptest::collection::vec(1..60u32, 0..40)) {
            let mut unsorted = UidSet::new();
            uids.iter().for_each(|uid| unsorted.insert(*uid));
            uids.sort_unstable();
            prop_assert_eq!(unsorted, uids.into_iter().collect());
        }

        #[test]
        fn splits_in_front(a in members(), count in 0..45u32) {
            let mut rest = set(&a);
            let front = rest.split_front(count);
            prop_assert_eq!(front.len(), count.min(a.len() as u32));
            prop_assert!(front.last().unwrap_or(0) < rest.first().unwrap_or(u32::MAX));
            let mut whole = front;
            whole.extend_from(&rest);
            prop_assert_eq!(whole, set(&a));
        }
    }

    #[test]
    fn the_ends_of_the_range_are_members() {
        let all = UidSet::range(0, u32::MAX);
        assert_eq!(all.to_string(), "1:4294967295");
        assert!(all.contains(u32::MAX) && !all.contains(0));
        assert_eq!(all.difference(&UidSet::range(2, u32::MAX)).to_string(), "1");
    }
}
