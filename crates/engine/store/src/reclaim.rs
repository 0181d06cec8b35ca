//! Reclaiming: bodies that no mailbox refers to are left out when their segment is written again.
//!
//! Nothing counts references: those to a range of segments are gathered from the mailboxes (*marking*,
//! a few partitions at a time), then each segment is written again by a job beside the store, and
//! takes the place of the old one. A reference made meanwhile is marked as it is made; when it is one
//! to a body that a job left out, the job's work is dropped. Bodies that are being delivered lie
//! behind the range. `docs/internals/store.md` says what a crash leaves.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use vere_ports::mail_meta::{MetaEngine, Partition, RowChange};
use vere_ports::storage::Storage;

use crate::log::{ReclaimJob, ReclaimOutcome};
use crate::rows::{MessageRow, keys};
use crate::{Store, StoreError};

/// Segments whose references are gathered at once: their bodies' positions are held in memory.
const SEGMENTS: usize = 64;
/// Partitions that a step looks at.
const PARTITIONS: usize = 100;

/// What there is to do to reclaim room.
#[derive(Debug)]
pub enum Reclaim<S: Storage> {
    /// References are being gathered; come again.
    Marking,
    /// A segment is to be written again: run it where it may block, then hand in what came of it.
    Job(ReclaimJob<S>),
    /// Every segment was looked at.
    Done,
}

/// Reclaiming under way.
#[derive(Debug)]
pub(crate) struct Reclaiming {
    range: Range<u64>,
    /// Segments that wait for their job.
    segments: VecDeque<u64>,
    marks: BTreeSet<u64>,
    /// The last partition that was looked at; none at the beginning.
    after: Option<Partition>,
    marked: bool,
    /// Whether a job is under way.
    busy: bool,
}

impl Reclaiming {
    /// Marks what messages among rows refer to.
    pub(crate) fn mark(&mut self, rows: &[RowChange]) {
        for row in rows
            .iter()
            .filter(|row| row.key.starts_with(keys::MESSAGES))
        {
            if let Some(message) = row.value.as_deref().and_then(MessageRow::decode) {
                self.mark_one(message.blob.0);
            }
        }
    }

    fn mark_one(&mut self, blob: u64) {
        if self.range.contains(&blob) {
            self.marks.insert(blob);
        }
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Goes on reclaiming, from the oldest segment to the last that is not written to any more: a
    /// segment is written again when at least `dead_percent_min` of it goes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn reclaim(&mut self, dead_percent_min: u64) -> Result<Reclaim<S>, StoreError> {
        self.log.check()?;
        if self.reclaiming.is_none() && !self.begin_reclaiming() {
            self.reclaimed_to = 0;
            return Ok(Reclaim::Done);
        }
        let Some(reclaiming) = &mut self.reclaiming else {
            return Ok(Reclaim::Done);
        };
        if reclaiming.busy {
            return Ok(Reclaim::Marking);
        }
        if !reclaiming.marked {
            self.mark_some()?;
            return Ok(Reclaim::Marking);
        }
        let Some(first) = reclaiming.segments.pop_front() else {
            self.reclaimed_to = reclaiming.range.end;
            self.reclaiming = None;
            return Ok(Reclaim::Marking);
        };
        reclaiming.busy = true;
        let end = self.log.segment_end(first);
        let live = reclaiming.marks.range(first..end).copied().collect();
        let job = self.log.reclaim_job(first, end, live, dead_percent_min);
        Ok(job.map_or(Reclaim::Marking, Reclaim::Job))
    }

    /// Takes the next segments that were written to the end and synced; false when there are none.
    fn begin_reclaiming(&mut self) -> bool {
        let segments: VecDeque<u64> = self.log.sealed(self.reclaimed_to).take(SEGMENTS).collect();
        let (Some(first), Some(last)) = (segments.front(), segments.back()) else {
            return false;
        };
        let mut reclaiming = Reclaiming {
            range: *first..self.log.segment_end(*last),
            segments,
            marks: BTreeSet::new(),
            after: None,
            marked: false,
            busy: false,
        };
        self.pending
            .all()
            .for_each(|batch| reclaiming.mark(&batch.rows));
        self.reclaiming = Some(reclaiming);
        true
    }

    fn mark_some(&mut self) -> Result<(), StoreError> {
        let Some(reclaiming) = &mut self.reclaiming else {
            return Ok(());
        };
        let partitions = self
            .meta
            .partitions(reclaiming.after.as_ref(), PARTITIONS)?;
        let mut bad = false;
        for partition in &partitions {
            self.meta.scan(partition, keys::MESSAGES, &mut |_, value| {
                match MessageRow::decode(value) {
                    Some(message) => reclaiming.mark_one(message.blob.0),
                    None => bad = true,
                }
                !bad
            })?;
        }
        if bad {
            // What a row refers to is unknown: nothing goes.
            self.reclaiming = None;
            return Err(StoreError::Damaged("a message in the metadata".to_owned()));
        }
        match partitions.into_iter().next_back() {
            Some(last) => reclaiming.after = Some(last),
            None => reclaiming.marked = true,
        }
        Ok(())
    }

    /// Takes what came of a [`ReclaimJob`] and gives the octets that it saved.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]; the segment is as it was.
    pub fn finish_reclaim(&mut self, outcome: ReclaimOutcome<S>) -> Result<u64, StoreError> {
        let mut marked_since = false;
        if let Some(reclaiming) = &mut self.reclaiming {
            reclaiming.busy = false;
            let end = self.log.segment_end(outcome.first);
            marked_since = reclaiming
                .marks
                .range(outcome.first..end)
                .any(|blob| !outcome.live.contains(blob));
        }
        let made = outcome.made.map_err(StoreError::Failed)?;
        match made.filter(|_| !marked_since) {
            Some(made) => self.log.replace(outcome.first, made),
            None => Ok(0),
        }
    }
}
