//! Reclaiming: segments are written again without needless records. Needless are bodies without a reference from any
//! mailbox, and changes before a snapshot of their mailbox.
//!
//! The store counts no references. A pass gathers the references to a range of segments from the mailboxes
//! ([`marking`], some rows at a time). Then a job beside the store writes each segment again, and the new file
//! replaces the old segment. A reference created meanwhile is marked at once; if a job left its body out, the work of
//! the job is dropped. Bodies being delivered lie behind the range. Then hints at removed bodies go ([`forgetting`]).
//! A pass ends with new [`snapshots`] of mailboxes whose changes take much space, so that the next pass leaves these
//! changes out. `docs/internals/store.md` describes the state after a crash.

mod forgetting;
pub(crate) mod marking;
mod snapshots;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

use vere_ports::mail_meta::{MetaEngine, Partition, RowChange};
use vere_ports::storage::Storage;

use crate::error::StoreError;
use crate::log::{Needed, ReclaimJob, ReclaimOutcome};
use crate::store::Store;
use forgetting::Forgetting;
use marking::Marking;
use snapshots::Candidates;

/// Segments whose references are gathered at once: their bodies' positions are held in memory.
const SEGMENTS: usize = 64;
/// A share of needless octets that no segment reaches, so that no segment is written again.
const LOOK_ONLY: u64 = 101;
/// Maximum number of partitions whose changes a pass counts. Beyond the maximum, further partitions are not counted.
const PARTITIONS_MAX: usize = 1_000_000;

/// The next action of reclaiming.
#[derive(Debug)]
pub enum Reclaim<S: Storage> {
    /// A step is done; call [`Store::reclaim`] again.
    Working,
    /// A segment has to be written again. Run the job on a thread that may block, then pass the outcome to
    /// [`Store::finish_reclaim`].
    Job(Box<ReclaimJob<S>>),
    /// The pass is complete.
    Done(ReclaimReport),
}

/// The result of a pass over all segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReclaimReport {
    /// Segments searched.
    pub segments: u64,
    /// Segments written again.
    pub rewritten: u64,
    /// Octets freed.
    pub saved: u64,
    /// Needless octets in segments that stay unchanged.
    pub dead: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Octets of changes made needless by these snapshots; the next pass leaves the changes out.
    pub covered: u64,
    /// Segments that could not be read, or not be written again for lack of disk space.
    pub failed: u64,
    /// Removed hints at bodies and threads that are gone.
    pub hints: u64,
    /// Mailboxes and accounts that got no snapshot because their metadata could not be read.
    pub unreadable: u64,
}

/// An estimate of reclaimable space, without reading the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reclaimable {
    /// Octets of the log.
    pub log: u64,
    /// Needless octets: the rest of the last pass, and messages removed since. Too high for messages with remaining
    /// copies, and for compressed messages.
    pub dead: u64,
}

/// A pass under way.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// The number of the pass since the store was opened.
    number: u64,
    report: ReclaimReport,
    /// The position up to which segments were searched.
    to: u64,
    /// Octets of remaining changes.
    changes: HashMap<Partition, u64>,
    /// Octets removed before the pass began, in the segments of the pass.
    removed: BTreeMap<u64, u64>,
    stage: Stage,
}

#[derive(Debug, Default)]
enum Stage {
    /// Choosing the next segments.
    #[default]
    Choosing,
    Segments(Box<Stretch>),
    Snapshots(Candidates),
}

/// A range of segments whose references are gathered together.
#[derive(Debug)]
struct Stretch {
    range: Range<u64>,
    /// Segments that wait for their job.
    segments: VecDeque<u64>,
    marking: Marking,
    forgetting: Forgetting,
    /// Whether a job runs.
    busy: bool,
}

/// Removed octets by segment: octets in the segment that was the newest at removal count for this segment, all others
/// for 0. The newest segment is not reclaimed.
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
    /// Records a change that is being logged.
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
    /// Continues reclaiming by one bounded step, from the oldest segment to the last closed segment. A segment is
    /// written again if at least `dead_percent_min` percent of its octets are needless.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] is final, as for every change. [`StoreError::Damaged`] names the unreadable metadata:
    /// the pass is abandoned, no record is removed, and the store goes on.
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

    /// Searches all segments at once and returns the needless octets. Takes as long as reading the log.
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

    /// Whether a pass runs.
    #[must_use]
    pub fn is_reclaiming(&self) -> bool {
        self.reclaiming.is_some()
    }

    /// Abandons the running pass; the work of its job is dropped.
    pub fn stop_reclaiming(&mut self) {
        self.reclaiming = None;
    }

    /// Returns an estimate of the reclaimable space.
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

    /// Restores the estimate that [`Store::reclaimable`] gave when the store was last open.
    pub fn set_reclaimable(&mut self, dead: u64) {
        self.dead = dead;
    }

    /// Chooses the next closed and synced segments.
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

    /// Accepts the outcome of a [`ReclaimJob`] and returns the octets saved.
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

    /// Reports whether the disk is nearly full. On a nearly full disk the store refuses messages and gives up the
    /// first spare file, so that messages can be removed. Once the disk has space again, missing spare files are
    /// created again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`].
    pub fn note_room(&mut self, scarce: bool) -> Result<(), StoreError> {
        self.log.note_room(scarce)
    }

    /// Whether the store accepts messages, and not only removals.
    #[must_use]
    pub fn is_roomy(&self) -> bool {
        self.log.is_roomy()
    }

    /// Counts reclaimable octets of the record at a position.
    pub(crate) fn count_removed(&mut self, position: u64, octets: u64) {
        self.removed.add(position, self.log.newest(), octets);
    }
}
