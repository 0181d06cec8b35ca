//! The runs of a zone, and walking from one that was found to its messages.

use std::borrow::Cow;
use std::ops::Range;

use vere_ports::storage::StorageFile;

use super::{Segment, Zone};
use crate::codec::{each_posting, postings_len, take, u32_at};
use crate::edges::EDGE;
use crate::write::{GROUP, GROUPS, LONG, MARK, POSTINGS, RUNS};
use crate::{Bits, SearchError};

/// A run, and what is said of it.
#[derive(Debug, Clone, Copy)]
struct At {
    /// Its number.
    number: usize,
    /// Where it begins.
    start: usize,
    /// Where its postings begin.
    postings: usize,
}

/// Postings up to this size are kept with their runs: those of single fields, and of small segments.
const POSTINGS_KEPT_MAX: u64 = 64 * 1024;

/// The runs of a zone, sorted, with their groups and the signatures of long ones, which lie together in
/// the file; and where their postings are, which lie behind them.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Where the octets begin.
    start: u64,
    octets: Vec<u8>,
    runs: Range<usize>,
    groups: Range<usize>,
    long: Range<usize>,
    postings: Range<u64>,
}

impl Kept {
    pub(super) fn read<F: StorageFile>(
        segment: &Segment<F>,
        zone: Zone,
    ) -> Result<Self, SearchError> {
        let sections = [RUNS, GROUPS, LONG, POSTINGS];
        let [runs, groups, long, postings] = sections.map(|number| segment.section(zone, number));
        if runs.end != groups.start || groups.end != long.start || long.end != postings.start {
            return Err(SearchError::Damaged);
        }
        let end = match postings.end.saturating_sub(postings.start) {
            ..=POSTINGS_KEPT_MAX => postings.end,
            _ => long.end,
        };
        let (start, octets) = match runs.start == end {
            true => (runs.start, Vec::new()),
            false => segment.file.blocks(&(runs.start..end))?,
        };
        let within =
            |range: &Range<u64>| (range.start - start) as usize..(range.end - start) as usize;
        Ok(Self {
            start,
            runs: within(&runs),
            groups: within(&groups),
            long: within(&long),
            octets,
            postings,
        })
    }

    #[cfg(test)]
    pub(crate) fn of(octets: Vec<u8>) -> Self {
        Self {
            start: 0,
            octets,
            runs: 0..0,
            groups: 0..0,
            long: 0..0,
            postings: 0..0,
        }
    }

    /// Octets of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.octets.capacity() + size_of::<Self>()
    }

    pub(super) fn runs(&self) -> &[u8] {
        self.octets.get(self.runs.clone()).unwrap_or_default()
    }

    fn groups(&self) -> &[u8] {
        self.octets.get(self.groups.clone()).unwrap_or_default()
    }

    pub(super) fn long(&self) -> &[u8] {
        self.octets.get(self.long.clone()).unwrap_or_default()
    }

    /// The postings, and where they begin, when they are kept.
    pub(super) fn postings(&self) -> Option<(u64, &[u8])> {
        let within = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        let range = within(self.postings.start)?..within(self.postings.end)?;
        Some((self.postings.start, self.octets.get(range)?))
    }

    fn start(&self, group: usize) -> Option<usize> {
        Some(u32_at(self.groups(), group * 8)? as usize)
    }

    /// The first run of a group.
    fn first(&self, group: usize) -> &[u8] {
        let start = self.start(group).unwrap_or(self.runs.len());
        let rest = self.runs().get(start..).unwrap_or_default();
        let end = memchr::memchr(MARK, rest).unwrap_or(rest.len());
        &rest[..end]
    }

    /// The first group for which something does not hold any more.
    fn partition(&self, holds: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.groups().len() / 8);
        while low < high {
            let middle = usize::midpoint(low, high);
            match holds(self.first(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Where the runs of texts lie, which edges are behind.
    pub(super) fn words(&self) -> Range<usize> {
        let region = self.region(&[EDGE]);
        let behind = self.runs().get(region.clone()).unwrap_or_default();
        0..memchr::memchr(EDGE, behind).map_or(region.end, |at| region.start + at)
    }

    /// Where the edges lie.
    pub(super) fn edges(&self) -> Range<usize> {
        self.words().end..self.runs().len()
    }

    /// Where the runs that begin with something lie, marks included.
    pub(super) fn region(&self, what: &[u8]) -> Range<usize> {
        let from = self.partition(|run| run < what).saturating_sub(1);
        let to = self.partition(|run| run <= what || run.starts_with(what));
        let start = self.start(from).unwrap_or(1).saturating_sub(1);
        start..self.start(to).unwrap_or(self.runs.len())
    }
}

/// Walks from run to run and takes their postings.
pub(super) struct Walk<'a, F> {
    segment: &'a Segment<F>,
    kept: &'a Kept,
    at: At,
    /// A part of the postings, and where it begins in the file.
    part: (u64, Cow<'a, [u8]>),
}

impl<'a, F: StorageFile> Walk<'a, F> {
    pub(super) fn new(segment: &'a Segment<F>, kept: &'a Kept) -> Result<Self, SearchError> {
        let mut walk = Self {
            segment,
            kept,
            at: At {
                number: 0,
                start: 0,
                postings: 0,
            },
            part: match kept.postings() {
                Some((start, postings)) => (start, postings.into()),
                None => (0, Cow::default()),
            },
        };
        walk.at = walk.group(0).ok_or(SearchError::Damaged)?;
        Ok(walk)
    }

    fn group(&self, group: usize) -> Option<At> {
        Some(At {
            number: group * GROUP,
            start: self.kept.start(group)?,
            postings: u32_at(self.kept.groups(), group * 8 + 4)? as usize,
        })
    }

    /// Takes in the messages of the run that an octet lies in; the octets rise.
    pub(super) fn take(&mut self, octet: usize, with: &mut Bits) -> Result<(), SearchError> {
        self.leap(octet).ok_or(SearchError::Damaged)?;
        loop {
            let end = memchr::memchr(
                MARK,
                self.kept.runs().get(self.at.start..).unwrap_or_default(),
            );
            let end = end.ok_or(SearchError::Damaged)? + self.at.start;
            let (head, list) = self.postings()?;
            if octet <= end {
                let octets = self.part.1.get(list).ok_or(SearchError::Damaged)?;
                return each_posting(head, octets, |ordinal| with.set(ordinal as usize))
                    .ok_or(SearchError::Damaged);
            }
            let next = self.part.0 + list.end as u64 - self.kept.postings.start;
            self.at = At {
                number: self.at.number + 1,
                start: end + 1,
                postings: next as usize,
            };
        }
    }

    /// Goes to the group that an octet lies in, when it is a later one.
    fn leap(&mut self, octet: usize) -> Option<()> {
        let next = self.at.number / GROUP + 1;
        match self.group(next) {
            Some(group) if group.start <= octet => {}
            _ => return Some(()),
        }
        let (mut low, mut high) = (next, self.kept.groups().len() / 8);
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            match self.group(middle)?.start <= octet {
                true => low = middle,
                false => high = middle,
            }
        }
        self.at = self.group(low)?;
        Some(())
    }

    /// The number at the front of the current run's postings, and where in the part the rest is.
    fn postings(&mut self) -> Result<(u64, Range<usize>), SearchError> {
        let kept = self.kept;
        let section = &kept.postings;
        let start = section.start + self.at.postings as u64;
        let mut want = start..start.saturating_add(NUMBER_MAX).min(section.end);
        loop {
            let part = self.part.0..self.part.0 + self.part.1.len() as u64;
            if want.start < part.start || want.end > part.end {
                let (start, octets) = self.segment.file.blocks(&want)?;
                self.part = (start, octets.into());
            }
            let from = (want.start - self.part.0) as usize;
            let mut rest = self.part.1.get(from..).unwrap_or_default();
            let before = rest.len();
            let head = take(&mut rest).ok_or(SearchError::Damaged)?;
            let from = from + before - rest.len();
            let end = from
                .checked_add(postings_len(head))
                .ok_or(SearchError::Damaged)?;
            if end <= self.part.1.len() {
                return Ok((head, from..end));
            }
            if self.part.0 + end as u64 > section.end {
                return Err(SearchError::Damaged);
            }
            want.end = self.part.0 + end as u64;
        }
    }
}

/// The most octets of a number.
const NUMBER_MAX: u64 = 10;
