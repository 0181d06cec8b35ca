//! Choosing the segments to write again, and replacing old segments by new segments.

use std::io;
use std::sync::Arc;

use vere_ports::storage::{Storage, StorageFile as _};

use super::format::{SegmentHead, segment_name};
use super::job::{Needed, ReclaimJob};
use super::rewrite::{self, Made};
use super::{Log, Segment};
use crate::error::StoreError;

impl<S: Storage> Log<S> {
    /// Returns the closed segments from a position on: fully synced, and not the newest segment.
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

    /// Returns how many of the first segments are worth joining: consecutive segments, written again before, and
    /// small by now. Every copied record moves into a file at least twice as large, so no record is copied often.
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

    /// Returns the job that joins consecutive segments into one segment with the needed records.
    pub(crate) fn reclaim_job(&self, run: Vec<u64>, needed: Needed) -> Option<ReclaimJob<S>> {
        let head = SegmentHead {
            log: self.id,
            first: *run.first()?,
            end: self.segment_end(*run.last()?),
        };
        let (storage, segments) = (self.storage.clone(), Arc::clone(&self.segments));
        ReclaimJob::new(storage, segments, self.written, head, run, needed)
    }

    /// Keeps the old segments and removes the new file.
    pub(crate) fn leave(&self, run: &[u64], made: &io::Result<Option<Made<S::File>>>) {
        if let (Some(first), Ok(Some(_))) = (run.first(), made) {
            // If removing the file fails, the next opening removes it.
            let _ = self.storage.remove(&rewrite::new_name(*first));
        }
    }

    /// Replaces one or several old segments by the new segment, and returns the octets saved.
    pub(crate) fn replace(&mut self, run: &[u64], made: Made<S::File>) -> Result<u64, StoreError> {
        let Some((first, others)) = run.split_first() else {
            return Ok(0);
        };
        if let Err(error) = rewrite::replace(&self.storage, *first) {
            // Whether the old file or the new file has the name is unknown.
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
            // The joined segment has all records of this segment. If removing the file fails, the next opening
            // removes it.
            let _ = self.storage.remove(&segment_name(*other));
        }
        Ok(made.saved)
    }
}
