//! Which segments are written again, and what becomes of those in whose place others come.

use std::io;
use std::sync::Arc;

use vere_ports::storage::{Storage, StorageFile as _};

use super::format::{SegmentHead, segment_name};
use super::job::{Needed, ReclaimJob};
use super::rewrite::{self, Made};
use super::{Log, Segment};
use crate::StoreError;

impl<S: Storage> Log<S> {
    /// The segments from a position on that are not written to any more and whole on the disk.
    pub(crate) fn sealed(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        let firsts = self.segments.range(from..).map(|(first, _)| *first);
        let newest = self.newest();
        firsts.filter(move |first| *first < newest && self.segment_end(*first) <= self.synced)
    }

    /// The position after a segment.
    pub(crate) fn segment_end(&self, first: u64) -> u64 {
        let next = self.segments.range(first.saturating_add(1)..).next();
        next.map_or(self.written, |(next, _)| *next)
    }

    /// How many of the first of these segments are best made one: such as follow each other, were written again
    /// before, and are small by now. What is copied gets into a file at least twice as large, so that nothing
    /// is copied often.
    pub(crate) fn joinable<'a>(&self, firsts: impl Iterator<Item = &'a u64>) -> usize {
        let (mut total, mut largest, mut best, mut follows) = (0, 0, 1, None);
        for (number, first) in firsts.enumerate() {
            let segment = self.segments.get(first);
            let again = segment.filter(|segment| segment.index.is_some());
            let Some(Ok(len)) = again.map(|segment| segment.file.len()) else {
                break;
            };
            (total, largest) = (total + len, len.max(largest));
            if total > self.segment_size / 2 || follows.is_some_and(|next| next != *first) {
                break;
            }
            if largest * 2 <= total || total <= self.segment_size / 64 {
                best = number + 1;
            }
            follows = Some(self.segment_end(*first));
        }
        best
    }

    /// The job that writes segments, which follow each other, again as one with what is needed.
    pub(crate) fn reclaim_job(&self, run: Vec<u64>, needed: Needed) -> Option<ReclaimJob<S>> {
        let head = SegmentHead {
            log: self.id,
            first: *run.first()?,
            end: self.segment_end(*run.last()?),
        };
        let (storage, segments) = (self.storage.clone(), Arc::clone(&self.segments));
        ReclaimJob::new(storage, segments, self.written, head, run, needed)
    }

    /// Leaves segments as they are, and what was written in their place goes.
    pub(crate) fn leave(&self, run: &[u64], made: &io::Result<Option<Made<S::File>>>) {
        if let (Some(first), Ok(Some(_))) = (run.first(), made) {
            // What cannot be removed now goes at the next opening.
            let _ = self.storage.remove(&rewrite::new_name(*first));
        }
    }

    /// Puts a segment that was written again in the place of the old one, or of several, and gives the octets
    /// saved.
    pub(crate) fn replace(&mut self, run: &[u64], made: Made<S::File>) -> Result<u64, StoreError> {
        let Some((first, others)) = run.split_first() else {
            return Ok(0);
        };
        if let Err(error) = rewrite::replace(&self.storage, *first) {
            // Which of the two has the name is unknown.
            return Err(self.fail(error.to_string()));
        }
        let segment = Segment {
            file: made.file,
            room: made.len,
            index: Some(made.index),
        };
        let segments = Arc::make_mut(&mut self.segments);
        segments.insert(*first, segment);
        for other in others {
            segments.remove(other);
            // All of it is in the one before by now; what stays of it goes at the next opening.
            let _ = self.storage.remove(&segment_name(*other));
        }
        Ok(made.saved)
    }
}
