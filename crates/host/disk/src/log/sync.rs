//! Syncs beside the writing thread.
//!
//! A log asks for a sync and goes on writing; whoever runs the jobs (a thread in production, the test itself
//! in tests) syncs everything written until the job began. A request during a job makes another job after it:
//! the group commit.
//!
//! Two threads that wake each other for a single message cost more than the sync, on a disk that syncs within
//! a fraction of a millisecond. So where a single message waits, and no job is under way, the writing thread
//! syncs by itself ([`Syncing::sync_in_place`]), as long as recent syncs were fast ([`Pace`]).

use std::io;
use std::sync::{OnceLock, PoisonError};

use vere_ports::spool_log::LogError;
use vere_ports::storage::{Storage, StorageFile};

use super::format::Mark;
use super::index::{self, Sealed};
use super::indexer::{IndexJob, Indexed, Indexing};
use super::pace::Pace;
use super::recover::Common;
use super::spares::{self, Spares, retired_at_once};
use super::threads::{Arc, AtomicU64, Mutex, MutexGuard, Ordering, Receiver, Sender, downgrade};

/// The file with the marks.
pub(super) const MARK_NAME: &str = "mark";
/// The offsets of the two marks: in different sectors, so that a torn write destroys only one mark.
pub(super) const MARKS_AT: [u64; 2] = [0, 4096];

/// Called when a job is done.
pub type Wake = std::sync::Arc<dyn Fn() + Send + Sync>;

/// The common state of a log and the syncer.
pub(super) struct Syncing<S: Storage> {
    storage: S,
    wanted: Mutex<Wanted<S>>,
    marks: Mutex<Marks<S>>,
    spares: Mutex<Spares<S>>,
    indexed: Mutex<Indexed>,
    /// The indexing of segments, if enabled.
    indexing: Option<Indexing<S>>,
    segment_len: u64,
    synced: AtomicU64,
    pace: Pace,
    failure: OnceLock<LogError>,
}

struct Wanted<S: Storage> {
    /// Files with unsynced octets, oldest first; the last file is being written to.
    files: Vec<S::File>,
    /// Whether a file was made.
    names: bool,
    /// All octets before this position were written.
    position: u64,
    /// The segments before this number are removed, once the position is synced.
    oldest: u64,
    /// Whether to write a mark with the synced position.
    mark: bool,
    /// Whether a job is waiting to be run.
    queued: bool,
    /// Whether a job is running.
    running: bool,
}

/// The newest mark, and the values of the next mark.
struct Marks<S: Storage> {
    file: S::File,
    newest: Mark,
    /// The synced position.
    synced: u64,
    /// The segments before this number are not needed.
    oldest: u64,
    /// Whether to write a mark in any case.
    asked: bool,
}

impl<S: Storage> std::fmt::Debug for Syncing<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let failure = self.failure.get();
        f.debug_struct("Syncing")
            .field("synced", &self.synced)
            .field("failure", &failure)
            .finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Storage> Syncing<S> {
    /// All octets before the position in `mark` are synced; `file` is the segment being written to.
    pub(super) fn new(
        storage: S,
        (mark_file, mark): (S::File, Mark),
        (newest, file): (u64, S::File),
        common: &Common<S>,
    ) -> Self {
        let wanted = Wanted {
            files: vec![file],
            names: false,
            position: mark.synced,
            oldest: mark.oldest,
            mark: false,
            queued: false,
            running: false,
        };
        Self {
            spares: Mutex::new(Spares::new(storage.clone(), common.segment_len, newest + 1)),
            indexed: Mutex::default(),
            indexing: common.indexing.clone(),
            storage,
            wanted: Mutex::new(wanted),
            marks: Mutex::new(Marks {
                file: mark_file,
                newest: mark,
                synced: mark.synced,
                oldest: mark.oldest,
                asked: false,
            }),
            segment_len: common.segment_len,
            synced: AtomicU64::new(mark.synced),
            pace: Pace::new(common.in_place_max),
            failure: OnceLock::new(),
        }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub(super) fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    pub(super) fn fail(&self, reason: String) {
        // Only the first failure is reported.
        let _ = self.failure.set(LogError::Failed(reason));
    }

    /// Records that synced octets are lost.
    pub(super) fn damaged(&self, reason: String) {
        let _ = self.failure.set(LogError::Damaged(reason));
    }

    /// Begins the file of the next segment, with this head; later writes go to this file.
    ///
    /// # Errors
    ///
    /// The error of the operating system; the segment was then not begun.
    pub(super) fn begin_segment(&self, head: [&[u8]; 2]) -> io::Result<S::File> {
        let mut spares = lock(&self.spares);
        let (file, lasts) = spares.take()?;
        if let Err(error) = file.write_at(head, 0) {
            spares.put_back(file);
            return Err(error);
        }
        drop(spares);
        let mut wanted = lock(&self.wanted);
        wanted.files.push(file.clone());
        wanted.names |= !lasts;
        Ok(file)
    }

    pub(super) const fn storage(&self) -> &S {
        &self.storage
    }

    /// Whether a segment is not to be removed.
    pub(super) fn needs(&self, number: u64) -> bool {
        number >= lock(&self.wanted).oldest
    }

    /// Records a full segment, followed by another segment.
    pub(super) fn seal(&self, segment: Sealed) {
        if self.indexing.is_some() {
            lock(&self.indexed).add(segment);
        }
    }

    /// A segment has an index, or is about to.
    pub(super) fn note_index(&self, number: u64) {
        lock(&self.indexed).note(number);
    }

    /// Queues the verification of a segment with an index.
    pub(super) fn scrub(this: &Arc<Self>, segment: Sealed) {
        Self::send_index_job(this, segment, true);
    }

    fn send_index_job(this: &Arc<Self>, segment: Sealed, scrub: bool) {
        if let Some(indexing) = &this.indexing {
            let log = downgrade(this);
            // Without the indexing thread the next start takes longer, without further harm.
            let _ = indexing.jobs.send(IndexJob {
                log,
                segment,
                scrub,
            });
        }
    }

    /// Queues indexes for segments that have been full for some time.
    fn index_some(this: &Arc<Self>) {
        let Some(indexing) = &this.indexing else {
            return;
        };
        if lock(&this.spares).is_scarce() {
            return;
        }
        loop {
            let next = lock(&this.indexed).next(indexing.behind, this.synced());
            let Some(segment) = next else { return };
            Self::send_index_job(this, segment, false);
        }
    }

    /// Says whether the disk is full.
    pub(super) fn set_scarce(&self, scarce: bool) {
        lock(&self.spares).set_scarce(scarce);
    }

    /// Wants everything before `position` synced, and then the segments before `oldest` gone. True
    /// when there is a job to be queued.
    pub(super) fn want(&self, position: u64, oldest: u64) -> bool {
        let mut wanted = lock(&self.wanted);
        (wanted.position, wanted.oldest) = (position, oldest);
        !std::mem::replace(&mut wanted.queued, true)
    }

    /// Syncs all octets before `position` on this thread. False when a job has to sync: a slow sync is
    /// expected, a job is under way, or the request needs further work.
    pub(super) fn sync_in_place(&self, position: u64, oldest: u64) -> bool {
        if !self.pace.is_brisk() {
            return false;
        }
        {
            let mut wanted = lock(&self.wanted);
            let under_way = wanted.queued || wanted.running;
            let more = wanted.names || wanted.files.len() > 1 || wanted.oldest != oldest;
            if under_way || more {
                return false;
            }
            wanted.position = position;
        }
        self.attempt(|| self.run());
        self.end_job();
        true
    }

    /// Requests a mark with the synced position. True when there is a job to be queued.
    pub(super) fn want_mark(&self) -> bool {
        // A mark is being written already.
        let Ok(marks) = self.marks.try_lock() else {
            return false;
        };
        if marks.newest.synced == self.synced() && marks.newest.oldest == marks.oldest {
            return false;
        }
        drop(marks);
        let mut wanted = lock(&self.wanted);
        wanted.mark = true;
        !std::mem::replace(&mut wanted.queued, true)
    }

    /// Runs work that may fail. After a failure no octet may be reported as synced: the operating system may
    /// have dropped unwritten pages.
    fn attempt(&self, work: impl FnOnce() -> io::Result<()>) {
        if self.failure().is_none()
            && let Err(error) = work()
        {
            self.fail(error.to_string());
        }
    }

    /// Syncs the octets written so far.
    fn run(&self) -> io::Result<()> {
        let (files, names, position, oldest, mark) = {
            let mut wanted = lock(&self.wanted);
            (wanted.queued, wanted.running) = (false, true);
            let names = std::mem::take(&mut wanted.names);
            let mark = std::mem::take(&mut wanted.mark);
            (
                wanted.files.clone(),
                names,
                wanted.position,
                wanted.oldest,
                mark,
            )
        };
        // The head of a new segment has to be synced before earlier segments are removed.
        if position > self.synced() || names || files.len() > 1 {
            for file in &files {
                self.pace.time(|| file.sync())?;
            }
            if names {
                self.storage.sync()?;
            }
            // The last file remains open for writing.
            lock(&self.wanted)
                .files
                .drain(..files.len().saturating_sub(1));
            self.synced.store(position, Ordering::Release);
        }
        let mut marks = lock(&self.marks);
        (marks.synced, marks.oldest) = (position, oldest);
        marks.asked |= mark;
        Ok(())
    }

    /// Ends the job begun by [`Self::run`], and its following work.
    fn end_job(&self) {
        lock(&self.wanted).running = false;
    }

    /// Work without a waiting message: retires old segments, and makes spare files.
    fn tidy(this: &Arc<Self>) -> io::Result<()> {
        let mut marks = lock(&this.marks);
        let retired = marks.newest.oldest..marks.oldest;
        let many = retired.end.saturating_sub(retired.start) >= retired_at_once(this.segment_len);
        if many || std::mem::take(&mut marks.asked) {
            marks.write()?;
            drop(marks);
            for number in retired {
                if lock(&this.indexed).forget(number)
                    && let Err(error) = index::remove(&this.storage, number)
                {
                    tracing::warn!(segment = number, %error, "cannot remove index of old log segment");
                }
                // The file takes space without further harm; the next start removes the file.
                if let Err(error) = lock(&this.spares).retire(number) {
                    tracing::warn!(segment = number, %error, "cannot remove old log segment");
                }
            }
        } else {
            drop(marks);
        }
        this.make_spares();
        Self::index_some(this);
        let (end, sync) = {
            let spares = lock(&this.spares);
            (spares.end(), spares.are_unsafe())
        };
        if sync {
            this.storage.sync()?;
            lock(&this.spares).last(end);
        }
        Ok(())
    }

    /// Without spare files a segment's file is made when the segment begins, which takes longer without
    /// further harm.
    fn make_spares(&self) {
        let (missing, len, write) = {
            let spares = lock(&self.spares);
            (spares.missing(), spares.len(), spares.are_written())
        };
        for _ in 0..missing {
            let made = spares::make(&self.storage, len, write);
            let made = made.and_then(|file| lock(&self.spares).add_new(file));
            if let Err(error) = made {
                tracing::debug!(%error, "cannot make a log segment in advance");
                return;
            }
        }
    }
}

impl<S: Storage> Marks<S> {
    /// On stable storage when it returns: only then may segments go.
    fn write(&mut self) -> io::Result<()> {
        self.newest = Mark {
            synced: self.synced,
            oldest: self.oldest,
            serial: self.newest.serial + 1,
            ..self.newest
        };
        let at = MARKS_AT[(self.newest.serial % 2) as usize];
        self.file.write_at([&self.newest.encode(), &[]], at)?;
        self.file.sync()
    }
}

/// Writes both marks.
pub(super) fn write_marks<F: StorageFile>(file: &F, mark: Mark) -> io::Result<()> {
    for at in MARKS_AT {
        file.write_at([&mark.encode(), &[]], at)?;
    }
    file.sync()
}

/// Jobs for a syncer.
pub(super) type Jobs<S> = Sender<Arc<Syncing<S>>>;

/// Runs jobs until every log is gone.
pub(super) fn run_jobs<S: Storage>(jobs: &Receiver<Arc<Syncing<S>>>, wake: &Wake) {
    while let Ok(job) = jobs.recv() {
        job.attempt(|| job.run());
        wake();
        job.attempt(|| Syncing::tidy(&job));
        job.end_job();
    }
}

/// Runs the waiting jobs.
#[cfg(test)]
pub(super) fn run_waiting<S: Storage>(jobs: &Receiver<Arc<Syncing<S>>>) {
    while let Ok(job) = jobs.try_recv() {
        job.attempt(|| job.run());
        job.attempt(|| Syncing::tidy(&job));
        job.end_job();
    }
}
