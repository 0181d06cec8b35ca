//! The walk from a found run to its messages.

use std::borrow::Cow;
use std::ops::Range;

use vere_ports::storage::StorageFile;

use crate::codec::{each_posting, postings_len, take, u32_at};
use crate::file::Checked;
use crate::format::{GROUP, MARK};
use crate::kept::Kept;
use crate::{Bits, SearchError};

/// A run with its data.
#[derive(Debug, Clone, Copy)]
struct At {
    /// Its number.
    number: usize,
    /// Where it begins.
    start: usize,
    /// The beginning of the postings.
    postings: usize,
}

/// Walks from run to run and reads the postings.
pub(super) struct Walk<'a, F> {
    file: &'a Checked<F>,
    kept: &'a Kept,
    at: At,
    /// A part of the postings, and where it begins in the file.
    part: (u64, Cow<'a, [u8]>),
}

impl<'a, F: StorageFile> Walk<'a, F> {
    pub(super) fn new(file: &'a Checked<F>, kept: &'a Kept) -> Result<Self, SearchError> {
        let mut walk = Self {
            file,
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
            let next = self.part.0 + list.end as u64 - self.kept.postings_at().start;
            self.at = At {
                number: self.at.number + 1,
                start: end + 1,
                postings: next as usize,
            };
        }
    }

    /// Moves to the group of an octet, if the group is a later group.
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
        let section = kept.postings_at();
        let start = section.start + self.at.postings as u64;
        let mut want = start..start.saturating_add(NUMBER_MAX).min(section.end);
        loop {
            let part = self.part.0..self.part.0 + self.part.1.len() as u64;
            if want.start < part.start || want.end > part.end {
                let (start, octets) = self.file.blocks(&want)?;
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
