//! Reclaiming: what nothing needs any more is left out when its segment is written again. That is a body
//! to which no mailbox refers, and a change before a snapshot of its mailbox.
//!
//! Nothing counts references: those to a range of segments are gathered from the mailboxes ([`marking`], some
//! rows at a time), then each segment is written again by a job beside the store, and
//! takes the place of the old one. A reference made meanwhile is marked as it is made; when it is one
//! to a body that a job left out, the job's work is dropped. Bodies that are being delivered lie
//! behind the range. Then hints go that name what is gone ([`forgetting`]). A pass ends with new [`snapshots`] of mailboxes whose changes take much room, so that
//! the next one leaves those out. `docs/internals/store.md` says what a crash leaves.

mod forgetting;
pub(crate) mod marking;
mod snapshots;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use vere_ports::mail_meta::{MetaEngine, Partition, RowChange};
use vere_ports::storage::Storage;

use crate::log::{Needed, ReclaimJob, ReclaimOutcome};
use crate::{Store, StoreError};
use forgetting::Forgetting;
use marking::Marking;
use snapshots::Candidates;

/// Segments whose references are gathered at once: their bodies' positions are held in memory.
const SEGMENTS: usize = 64;
/// A share of a segment that it never has: nothing is written.
const LOOK_ONLY: u64 = 101;
/// Partitions whose changes a pass counts; of more it counts those it meets first.
const PARTITIONS_MAX: usize = 1_000_000;

/// What there is to do to reclaim room.
#[derive(Debug)]
pub enum Reclaim<S: Storage> {
    /// A little was done; come again.
    Working,
    /// A segment is to be written again: run it where it may block, then hand in what came of it.
    Job(Box<ReclaimJob<S>>),
    /// Every segment was looked at.
    Done(ReclaimReport),
}

/// What a pass over all segments came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReclaimReport {
    /// Segments looked at.
    pub segments: u64,
    /// Segments written again.
    pub rewritten: u64,
    /// Octets that came back.
    pub saved: u64,
    /// Octets that nothing needs in segments that were left as they are.
    pub dead: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Octets of changes that need not be kept because of them; the next pass leaves them out.
    pub covered: u64,
    /// Segments for which there was no room on the disk, or which could not be read.
    pub failed: u64,
    /// Hints removed that named bodies and threads which are gone.
    pub hints: u64,
    /// Mailboxes and accounts that got no snapshot because their metadata could not be read.
    pub unreadable: u64,
}

/// Room that could come back, as far as it is known without looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimable {
    /// Octets of the log.
    pub log: u64,
    /// Octets that nothing needs: what the last pass left, and the messages that were removed since. Too
    /// many where copies of a message are left, or where it was compressed.
    pub dead: u64,
}

/// A pass under way.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Its number since the store was opened.
    number: u64,
    report: ReclaimReport,
    /// The position up to which segments were looked at.
    to: u64,
    /// Octets of changes that stay.
    changes: HashMap<Partition, u64>,
    /// What was removed before the pass began, of the segments it looks at.
    removed: BTreeMap<u64, u64>,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    /// The next segments are to be chosen.
    #[default]
    Choosing,
    Segments(Box<Stretch>),
    Snapshots(Candidates),
}

/// Segments whose references are gathered at once.
#[derive(Debug)]
struct Stretch {
    range: Range<u64>,
    /// Segments that wait for their job.
    segments: VecDeque<u64>,
    marking: Marking,
    forgetting: Forgetting,
    /// Whether a job is under way.
    busy: bool,
}

/// Octets that were removed, by the segment that was the newest then if they lie in it, else by 0: the
/// newest one is not reclaimed.
#[derive(Debug, Default)]
pub(crate) struct Removed(BTreeMap<u64, u64>);

impl Removed {
    fn add(&mut self, position: u64, newest: u64, octets: u64) {
        let segment = if position < newest { 0 } else { newest };
        *self.0.entry(segment).or_default() += octets;
    }

    fn before(&self, newest: u64) -> BTreeMap<u64, u64> {
        let older = self.0.range(..newest);
        older.map(|(segment, octets)| (*segment, *octets)).collect()
    }

    fn forget(&mut self, removed: &BTreeMap<u64, u64>) {
        for (segment, octets) in removed {
            if let Some(known) = self.0.get_mut(segment) {
                *known -= octets;
            }
        }
        self.0.retain(|_, octets| *octets > 0);
    }
}

impl Pass {
    /// Notes a change that is being logged.
    pub(crate) fn note(&mut self, partition: &Partition, clear: bool, rows: &[RowChange]) {
        match &mut self.stage {
            Stage::Choosing => {}
            Stage::Segments(stretch) => stretch.marking.mark(rows),
            Stage::Snapshots(candidates) => candidates.note(partition, clear, rows),
        }
    }

    fn count_changes(&mut self, changes: HashMap<Partition, u64>) {
        for (partition, octets) in changes {
            if let Some(known) = self.changes.get_mut(&partition) {
                *known += octets;
            } else if self.changes.len() < PARTITIONS_MAX {
                self.changes.insert(partition, octets);
            }
        }
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Goes on reclaiming, from the oldest segment to the last that is not written to any more: a
    /// segment is written again when at least `dead_percent_min` of it goes. Does a bounded piece of it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] is final, as of any other change. After [`StoreError::Damaged`], which names
    /// what cannot be read, the pass is given up, nothing goes, and the store goes on.
    pub fn reclaim(&mut self, dead_percent_min: u64) -> Result<Reclaim<S>, StoreError> {
        self.log.check()?;
        let mut pass = self.reclaiming.take().unwrap_or_else(|| Pass {
            number: self.passes + 1,
            removed: self.removed.before(self.log.newest()),
            ..Pass::default()
        });
        self.passes = pass.number;
        let done = match std::mem::take(&mut pass.stage) {
            Stage::Choosing => self.choose(&mut pass, dead_percent_min),
            Stage::Segments(stretch) => self.stretch(&mut pass, stretch, dead_percent_min)?,
            Stage::Snapshots(mut candidates) => {
                let covered = match self.snapshot_some(&mut candidates) {
                    Err(StoreError::Damaged(_)) => {
                        pass.report.unreadable += 1;
                        Some(0)
                    }
                    covered => covered?,
                };
                let Some(covered) = covered else {
                    self.removed.forget(&pass.removed);
                    self.dead = pass.report.dead + pass.report.covered;
                    return Ok(Reclaim::Done(pass.report));
                };
                pass.report.snapshots += u64::from(covered > 0);
                pass.report.covered += covered;
                pass.stage = Stage::Snapshots(candidates);
                Reclaim::Working
            }
        };
        self.reclaiming = Some(pass);
        Ok(done)
    }

    /// Looks at every segment at once and gives the octets that nothing needs. Takes as long as reading
    /// the log takes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn count_dead(&mut self) -> Result<u64, StoreError> {
        self.stop_reclaiming();
        loop {
            match self.reclaim(LOOK_ONLY)? {
                Reclaim::Working => {}
                Reclaim::Job(job) => {
                    self.finish_reclaim(job.run())?;
                }
                Reclaim::Done(report) => return Ok(report.dead),
            }
        }
    }

    /// Whether a pass is under way.
    #[must_use]
    pub fn is_reclaiming(&self) -> bool {
        self.reclaiming.is_some()
    }

    /// Gives up the pass under way; what a job of it did is dropped.
    pub fn stop_reclaiming(&mut self) {
        self.reclaiming = None;
    }

    /// Room that could come back.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub fn reclaimable(&self) -> Result<Reclaimable, StoreError> {
        Ok(Reclaimable {
            log: self.log.octets()?,
            dead: self.dead + self.removed.before(self.log.newest()).values().sum::<u64>(),
        })
    }

    /// Takes what [`Store::reclaimable`] said when the store was last open.
    pub fn set_reclaimable(&mut self, dead: u64) {
        self.dead = dead;
    }

    /// Takes the next segments that were written to the end and synced.
    fn choose(&mut self, pass: &mut Pass, dead_percent_min: u64) -> Reclaim<S> {
        let segments: VecDeque<u64> = self.log.sealed(pass.to).take(SEGMENTS).collect();
        let (Some(first), Some(last)) = (segments.front(), segments.back()) else {
            let changes = std::mem::take(&mut pass.changes);
            pass.stage = Stage::Snapshots(match dead_percent_min {
                LOOK_ONLY => Candidates::default(),
                _ => Candidates::new(changes),
            });
            return Reclaim::Working;
        };
        let range = *first..self.log.segment_end(*last);
        let mut marking = Marking::new(range.clone());
        self.pending
            .all()
            .for_each(|batch| marking.mark(&batch.rows));
        pass.stage = Stage::Segments(Box::new(Stretch {
            range,
            segments,
            marking,
            forgetting: Forgetting::default(),
            busy: false,
        }));
        Reclaim::Working
    }

    /// Marks, then gives a job for each segment.
    fn stretch(
        &mut self,
        pass: &mut Pass,
        mut stretch: Box<Stretch>,
        dead_percent_min: u64,
    ) -> Result<Reclaim<S>, StoreError> {
        let mut todo = Reclaim::Working;
        if !stretch.marking.is_done() {
            stretch.marking.step(&self.meta)?;
        } else if !stretch.busy {
            let count = match dead_percent_min {
                LOOK_ONLY => 1,
                _ => self.log.joinable(stretch.segments.iter()),
            };
            let count = count.min(stretch.segments.len());
            let run: Vec<u64> = stretch.segments.drain(..count).collect();
            let (Some(first), Some(last)) = (run.first(), run.last()) else {
                if dead_percent_min == LOOK_ONLY || stretch.forgetting.is_done() {
                    pass.to = stretch.range.end;
                    return Ok(todo);
                }
                let Stretch {
                    forgetting,
                    marking,
                    ..
                } = &mut *stretch;
                pass.report.hints += forgetting.step(&mut self.meta, marking)?;
                pass.stage = Stage::Segments(stretch);
                return Ok(todo);
            };
            let range = *first..self.log.segment_end(*last);
            let needed = Needed {
                pass: pass.number,
                live: stretch.marking.marks.range(range).copied().collect(),
                snapshots: Arc::clone(&stretch.marking.snapshots),
                dead_percent_min,
            };
            if let Some(job) = self.log.reclaim_job(run, needed) {
                stretch.busy = true;
                todo = Reclaim::Job(Box::new(job));
            }
        }
        pass.stage = Stage::Segments(stretch);
        Ok(todo)
    }

    /// Takes what came of a [`ReclaimJob`] and gives the octets that it saved.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`]; the segment is as it was.
    pub fn finish_reclaim(&mut self, outcome: ReclaimOutcome<S>) -> Result<u64, StoreError> {
        let run = &outcome.run;
        let Some(mut pass) = self.reclaiming.take() else {
            self.log.leave(run, &outcome.made);
            return Ok(0);
        };
        let number = pass.number;
        let stretch = match &mut pass.stage {
            Stage::Segments(stretch) if number == outcome.pass => stretch,
            _ => {
                // References made between the two passes may not be marked yet.
                self.log.leave(run, &outcome.made);
                self.reclaiming = Some(pass);
                return Ok(0);
            }
        };
        stretch.busy = false;
        let first = run.first().copied().unwrap_or(outcome.end);
        let mut marks = stretch.marking.marks.range(first..outcome.end);
        let marked_since = marks.any(|blob| !outcome.live.contains(blob));
        let changes = outcome.batches;
        let saved = match outcome.made {
            Ok(Some(made)) if !marked_since => {
                pass.report.rewritten += run.len() as u64;
                self.log.replace(run, made)
            }
            made @ Ok(_) => {
                self.log.leave(run, &made);
                pass.report.dead += outcome.dead;
                Ok(0)
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                // The spare room is for this.
                let again = self.log.give_up_spare();
                if matches!(again, Ok(true)) {
                    stretch.segments.extend(run);
                } else {
                    pass.report.dead += outcome.dead;
                    pass.report.failed += 1;
                }
                again.map(|_| 0)
            }
            Err(error) => Err(StoreError::Failed(error.to_string())),
        };
        pass.report.saved += saved.as_ref().copied().unwrap_or_default();
        pass.count_changes(changes);
        pass.report.segments += run.len() as u64;
        self.reclaiming = Some(pass);
        saved
    }

    /// Says whether the disk is nearly full: then messages are refused, and the spare room is given up so
    /// that others can be removed. When it is not, the spare room is taken again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub fn note_room(&mut self, scarce: bool) -> Result<(), StoreError> {
        self.log.note_room(scarce)
    }

    /// Whether messages are taken in, and not only removed.
    #[must_use]
    pub fn is_roomy(&self) -> bool {
        self.log.is_roomy()
    }

    /// Counts what may be given back of the record at a position.
    pub(crate) fn count_removed(&mut self, position: u64, octets: u64) {
        self.removed.add(position, self.log.newest(), octets);
    }
}
