//! The part of a zone kept in memory.

use std::ops::Range;

use vere_mime::Zone;
use vere_ports::storage::StorageFile;

use crate::SearchError;
use crate::codec::u32_at;
use crate::edges::EDGE;
use crate::file::Checked;
use crate::format::{GROUPS, Head, LONG, MARK, POSTINGS, RUNS};

/// Postings up to this size are kept with their runs: postings of single fields, and of small segments.
const POSTINGS_KEPT_MAX: u64 = 64 * 1024;

/// The runs of a zone, sorted, with their groups and the signatures of long runs, adjacent in the file;
/// and the place of the postings, which lie behind.
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
    /// Reads the runs from a file with this head.
    pub(crate) fn read<F: StorageFile>(
        file: &Checked<F>,
        head: &Head,
        zone: Zone,
    ) -> Result<Self, SearchError> {
        let sections = [RUNS, GROUPS, LONG, POSTINGS];
        let [runs, groups, long, postings] = sections.map(|number| head.of_zone(zone, number));
        if runs.end != groups.start || groups.end != long.start || long.end != postings.start {
            return Err(SearchError::Damaged);
        }
        let end = match postings.end.saturating_sub(postings.start) {
            ..=POSTINGS_KEPT_MAX => postings.end,
            _ => long.end,
        };
        let (start, octets) = match runs.start == end {
            true => (runs.start, Vec::new()),
            false => file.blocks(&(runs.start..end))?,
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

    /// Octets of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.octets.capacity() + size_of::<Self>()
    }

    pub(crate) fn runs(&self) -> &[u8] {
        self.octets.get(self.runs.clone()).unwrap_or_default()
    }

    pub(crate) fn groups(&self) -> &[u8] {
        self.octets.get(self.groups.clone()).unwrap_or_default()
    }

    pub(crate) fn long(&self) -> &[u8] {
        self.octets.get(self.long.clone()).unwrap_or_default()
    }

    /// Where the postings lie in the file.
    pub(crate) fn postings_at(&self) -> &Range<u64> {
        &self.postings
    }

    /// The postings with their beginning, if kept in memory.
    pub(crate) fn postings(&self) -> Option<(u64, &[u8])> {
        let within = |at: u64| usize::try_from(at.checked_sub(self.start)?).ok();
        let range = within(self.postings.start)?..within(self.postings.end)?;
        Some((self.postings.start, self.octets.get(range)?))
    }

    /// Where the runs of a group begin.
    pub(crate) fn start(&self, group: usize) -> Option<usize> {
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

    /// The range of runs from texts, in front of the edges.
    pub(crate) fn words(&self) -> Range<usize> {
        let region = self.region(&[EDGE]);
        let behind = self.runs().get(region.clone()).unwrap_or_default();
        0..memchr::memchr(EDGE, behind).map_or(region.end, |at| region.start + at)
    }

    /// Where the edges lie.
    pub(crate) fn edges(&self) -> Range<usize> {
        self.words().end..self.runs().len()
    }

    /// The range of the runs that begin with `what`, marks included.
    pub(crate) fn region(&self, what: &[u8]) -> Range<usize> {
        let from = self.partition(|run| run < what).saturating_sub(1);
        let to = self.partition(|run| run <= what || run.starts_with(what));
        let start = self.start(from).unwrap_or(1).saturating_sub(1);
        start..self.start(to).unwrap_or(self.runs.len())
    }
}
