//! Upkeep of the store: reclaims room in small steps, for a share of the time, and watches for a nearly full disk. A
//! small file, `reclaimed.json`, preserves the figures of reclaimable room over a restart. Without the file, a pass
//! over the whole log begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use vere_disk::log::Directory as LogDirectory;
use vere_settings::MailStore as Plan;
use vere_store::{
    Position, Reclaim, ReclaimJob, ReclaimOutcome, ReclaimReport, Reclaimable, StoreError,
};

use super::holds::Holds;
use super::keeping::{Keeping, Policy, Room};
use super::mail_store::MailStore;
use super::metrics::Figures;
use super::share::pause;
use vere_process::clock::now;

/// How often the upkeep checks whether to reclaim room.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long deleted mailboxes wait after one could not be emptied.
const EMPTYING_PAUSE: Duration = Duration::from_secs(60);
/// How often free room is checked.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);
/// Percentage of dead octets from which a segment is rewritten; less if `reclaim_from` is less.
const DEAD_PERCENT_MIN: u64 = 10;
/// Percentage of dead octets in the log from which room is reclaimed while room is scarce.
const SCARCE_PERCENT: u64 = 1;
/// The name and version of the file.
const FILE: &str = "reclaimed.json";
const VERSION: u32 = 1;

/// The figures of reclaimable room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReclaimFigures {
    version: u32,
    /// Dead octets of the log, estimated.
    pub(crate) dead: u64,
    /// The last pass over the log, if there was one.
    pub(crate) last: Option<LastPass>,
}

/// Results of the last pass over the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastPass {
    /// When it ended, in milliseconds since 1970.
    pub(crate) ended: u64,
    /// Octets reclaimed.
    pub(crate) saved: u64,
    /// Segments examined, and segments rewritten.
    pub(crate) segments: u64,
    pub(crate) rewritten: u64,
    /// Snapshots of mailboxes written.
    pub(crate) snapshots: u64,
}

impl ReclaimFigures {
    /// Reads the figures of the store in a folder; absent if no valid file exists.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(FILE)).ok()?;
        let known: Self = serde_json::from_slice(&text).ok()?;
        (known.version == VERSION).then_some(known)
    }

    /// Notes a pass that ended.
    pub(crate) fn note(&mut self, report: &ReclaimReport) {
        self.last = Some(LastPass {
            ended: now().as_millis(),
            saved: report.saved,
            segments: report.segments,
            rewritten: report.rewritten,
            snapshots: report.snapshots,
        });
    }

    /// Writes the file; a lost file costs a pass over the log.
    pub(crate) fn write(self, folder: &Path) {
        let known = Self {
            version: VERSION,
            ..self
        };
        let text = serde_json::to_vec(&known).unwrap_or_default();
        let new = folder.join(format!("{FILE}.new"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, folder.join(FILE)));
        if let Err(error) = written {
            tracing::warn!(%error, "what is known of reclaimable room cannot be noted");
        }
    }
}

/// Runs jobs for a share of the time.
#[derive(Debug)]
struct Worker {
    jobs: Receiver<Box<ReclaimJob<LogDirectory>>>,
    share: u32,
    stop: Arc<AtomicBool>,
}

impl Worker {
    fn run(self, mut done: impl FnMut(ReclaimOutcome<LogDirectory>) -> bool) {
        for mut job in &self.jobs {
            loop {
                let began = Instant::now();
                let more = job.step();
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                thread::sleep(pause(began.elapsed(), self.share));
                if !more {
                    break;
                }
            }
            if !done(job.finish()) {
                return;
            }
        }
    }
}

/// Upkeep by the store's thread, between questions.
#[derive(Debug)]
pub(super) struct Upkeep {
    plan: Plan,
    folder: PathBuf,
    figures: Figures,
    /// A backup that reads the log.
    holds: Holds,
    /// Expunged messages that are kept.
    keeping: Keeping,
    known: ReclaimFigures,
    /// Figures as the file has them.
    written: ReclaimFigures,
    to_work: Sender<Box<ReclaimJob<LogDirectory>>>,
    /// Whether a job is under way.
    busy: bool,
    /// Whether the thread that runs jobs has ended.
    given_up: bool,
    due: Instant,
    room_due: Instant,
    /// When to continue emptying deleted mailboxes, and the log position up to which the last piece was logged.
    emptying_due: Instant,
    emptied: Position,
    /// Whether the search for mailboxes to be emptied must continue.
    looking: bool,
    scarce: bool,
    /// Octets that were free on the disk, and how often reclaiming came to rest.
    free: u64,
    rests: u64,
    /// Whether the upkeep logged a change that no session waits for.
    unsafe_yet: bool,
    stop: Arc<AtomicBool>,
}

impl Upkeep {
    /// Starts the thread that runs jobs. `done` receives the result of each job, and returns whether to continue.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(super) fn start(
        plan: Plan,
        folder: PathBuf,
        store: &mut MailStore,
        figures: Figures,
        done: impl FnMut(ReclaimOutcome<LogDirectory>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (to_work, jobs) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            jobs,
            share: plan.reclaim_share,
            stop: Arc::clone(&stop),
        };
        Builder::new()
            .name("store-reclaim".to_owned())
            .spawn(move || worker.run(done))?;
        let known = ReclaimFigures::read(&folder).unwrap_or_else(|| {
            let log = store.reclaimable().map_or(0, |reclaimable| reclaimable.log);
            ReclaimFigures {
                dead: log,
                ..ReclaimFigures::default()
            }
        });
        store.set_reclaimable(known.dead);
        let keeping = Keeping::new(folder.join("kept.json"), store, figures.clone());
        Ok(Self {
            plan,
            folder,
            figures,
            keeping,
            holds: Holds::default(),
            known,
            written: ReclaimFigures::default(),
            to_work,
            busy: false,
            given_up: false,
            due: Instant::now() + LOOK_INTERVAL,
            room_due: Instant::now(),
            emptying_due: Instant::now(),
            emptied: Position::default(),
            looking: false,
            scarce: false,
            free: 0,
            rests: 0,
            unsafe_yet: false,
            stop,
        })
    }

    /// Respects these holds from now on.
    pub(super) fn heed(&mut self, holds: Holds) {
        self.holds = holds;
    }

    /// Applies the settings of expunged messages.
    pub(super) fn set_keeping(&mut self, policy: Policy, store: &mut MailStore) {
        self.keeping.set(policy, store);
    }

    /// Whether a segment is being written again.
    pub(super) const fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether a backup keeps the segments as they are. A nearly full disk ends the backup's hold: who removes mail
    /// needs the space.
    fn is_held(&self) -> bool {
        if self.scarce && self.holds.is_held() {
            tracing::error!(
                "the disk is nearly full: the backup under way is ended to reclaim space"
            );
            self.holds.end();
        }
        self.holds.is_held()
    }

    /// Whether the upkeep logged a change that no session waits for; resets the mark.
    pub(super) fn take_unsafe(&mut self) -> bool {
        std::mem::take(&mut self.unsafe_yet)
    }

    /// How long the store's thread may wait for questions.
    pub(super) fn patience(&self) -> Duration {
        if self.looking {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let room = match self.plan.reserve.as_u64() {
            0 => LOOK_INTERVAL,
            _ if self.scarce => self.room_due.saturating_duration_since(now),
            _ => LOOK_INTERVAL,
        };
        let work = match self.busy || self.given_up {
            true => LOOK_INTERVAL,
            false => self.due.saturating_duration_since(now),
        };
        room.min(work).min(self.keeping.patience())
    }

    /// Does a little of the work that is due.
    ///
    /// # Errors
    /// When the store has failed.
    pub(super) fn step(&mut self, store: &mut MailStore) -> Result<(), StoreError> {
        let now = Instant::now();
        if now >= self.room_due && self.plan.reserve.as_u64() > 0 {
            self.room_due = now + ROOM_INTERVAL;
            self.look_at_room(store)?;
        }
        self.empty_some(store)?;
        let share = self.plan.reclaim_share;
        let room = Room {
            is_scarce: self.scarce,
            free: self.free,
            rests: self.rests,
            is_reclaiming: store.is_reclaiming(),
        };
        self.unsafe_yet |= self.keeping.step(store, room, share)?;
        if self.busy || self.given_up || now < self.due {
            return Ok(());
        }
        if self.is_held() {
            self.due = now + LOOK_INTERVAL;
            return Ok(());
        }
        if !store.is_reclaiming() {
            self.figures.look(store, self.scarce);
        }
        if !store.is_reclaiming() && !self.is_worth_it(store)? {
            self.due = now + LOOK_INTERVAL;
            self.rests += 1;
            return Ok(());
        }
        let percent = self.reclaim_from().min(DEAD_PERCENT_MIN);
        match store.reclaim(percent) {
            Ok(Reclaim::Working) => {}
            Ok(Reclaim::Job(job)) => match self.to_work.send(job) {
                Ok(()) => self.busy = true,
                Err(_) => self.give_up(store),
            },
            Ok(Reclaim::Done(report)) => self.done(store, &report),
            Err(error @ StoreError::Failed(_)) => return Err(error),
            Err(error) => {
                tracing::error!(%error, "no room is reclaimed; vere store check says more");
                self.figures.not_reclaimed();
                self.due = now + LOOK_INTERVAL * 100;
                return Ok(());
            }
        }
        self.due = self
            .due
            .max(now + pause(now.elapsed(), self.plan.reclaim_share));
        Ok(())
    }

    /// Empties deleted mailboxes, one piece for each sync, so that other questions wait for a single piece.
    fn empty_some(&mut self, store: &mut MailStore) -> Result<(), StoreError> {
        self.looking = false;
        let is_due = Instant::now() >= self.emptying_due && self.emptied <= store.synced();
        if !is_due || !store.is_emptying() {
            return Ok(());
        }
        let before = store.end();
        match store.empty_some() {
            Ok(()) => {}
            Err(error @ StoreError::Failed(_)) => return Err(error),
            Err(error) => {
                tracing::error!(%error, "a deleted mailbox cannot be emptied now");
                self.emptying_due = Instant::now() + EMPTYING_PAUSE;
            }
        }
        self.emptied = store.end();
        let logged = self.emptied > before;
        self.unsafe_yet |= logged;
        // After a logged piece, the sync wakes the thread.
        self.looking = !logged && store.is_emptying() && Instant::now() >= self.emptying_due;
        Ok(())
    }

    /// Percentage of dead octets in the log from which room is reclaimed.
    fn reclaim_from(&self) -> u64 {
        match self.scarce {
            true => SCARCE_PERCENT,
            false => u64::from(self.plan.reclaim_from),
        }
    }

    fn is_worth_it(&self, store: &MailStore) -> Result<bool, StoreError> {
        let Reclaimable { log, dead } = store.reclaimable()?;
        let enough = dead.saturating_mul(100) >= log.saturating_mul(self.reclaim_from());
        Ok(dead > 0 && enough)
    }

    fn done(&mut self, store: &MailStore, report: &ReclaimReport) {
        if report.unreadable > 0 {
            tracing::error!(
                report.unreadable,
                "metadata cannot be read; vere store check says which"
            );
            self.figures.not_reclaimed();
        }
        if report.rewritten + report.snapshots + report.failed > 0 {
            tracing::info!(?report, "room of the mail store reclaimed");
        }
        self.unsafe_yet |= report.covered > 0;
        // What snapshots cover the next pass gives back, and what was unreadable none did.
        self.rests += u64::from(report.covered + report.unreadable == 0);
        self.figures.reclaimed(report);
        self.known.note(report);
        self.note(store);
        // Soon after progress the next pass can remove segments that snapshots cover. A pass without progress would
        // examine the same segments again and again, so the pause is longer.
        let soon = self.scarce || report.saved + report.covered > 0;
        let pause = if soon { 1 } else { 12 };
        self.due = Instant::now() + LOOK_INTERVAL * pause;
    }

    /// Writes the figures for the next start, if they changed.
    pub(super) fn note(&mut self, store: &MailStore) {
        let dead = store.reclaimable().map_or(self.known.dead, |now| now.dead);
        let known = ReclaimFigures { dead, ..self.known };
        if known != self.written {
            known.write(&self.folder);
            (self.known, self.written) = (known, known);
        }
    }

    /// Handles the result of a job.
    pub(super) fn finish(&mut self, store: &mut MailStore, outcome: ReclaimOutcome<LogDirectory>) {
        self.busy = false;
        if let Err(error) = store.finish_reclaim(outcome) {
            tracing::error!(%error, "a segment of the mail store's log is left as it is");
        }
    }

    /// Handles the end of the thread that runs jobs, which should not happen: the store continues without the thread.
    fn give_up(&mut self, store: &mut MailStore) {
        tracing::error!("room is not reclaimed any more until the store is started again");
        self.figures.not_reclaimed();
        self.given_up = true;
        store.stop_reclaiming();
    }

    /// Stops the thread that runs jobs.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn look_at_room(&mut self, store: &mut MailStore) -> Result<(), StoreError> {
        let reserve = self.plan.reserve.as_u64();
        let free = match vere_disk::free_octets(&self.folder) {
            Ok(free) => free,
            Err(error) => {
                tracing::warn!(%error, "the disk does not say how much is free");
                return Ok(());
            }
        };
        // Two thresholds, since giving up and making the spare files changes the free room by itself.
        let needed = if store.is_roomy() {
            reserve
        } else {
            reserve.saturating_mul(3)
        };
        let scarce = free < needed;
        if scarce != self.scarce {
            let free = vere_process::wording::size(free);
            match scarce {
                true => tracing::error!(%free, "the disk is nearly full: no message is taken in"),
                false => tracing::info!(%free, "there is room on the disk again"),
            }
            self.due = Instant::now();
        }
        (self.scarce, self.free) = (scarce, free);
        store.note_room(scarce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_back_and_nothing_else_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ReclaimFigures::read(folder.path()), None);
        let mut known = ReclaimFigures {
            version: VERSION,
            dead: 7,
            last: None,
        };
        known.note(&ReclaimReport {
            saved: 5,
            ..ReclaimReport::default()
        });
        known.write(folder.path());
        assert_eq!(ReclaimFigures::read(folder.path()), Some(known));
        fs::write(folder.path().join(FILE), b"{\"version\":2}").unwrap();
        assert_eq!(ReclaimFigures::read(folder.path()), None);
    }
}
