//! Syncing beside the thread that writes.
//!
//! A log asks for a sync and goes on writing; whoever runs the jobs (a thread in production, the test
//! itself in tests) syncs everything written until the job began. A request during a job makes
//! another one after it: that is the group commit.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use vere_ports::storage::{Storage, StorageFile};

use super::format::{Mark, segment_name};

/// The file with the marks.
pub(super) const MARK_NAME: &str = "mark";
/// Where the two marks lie: in different sectors, so that a torn write spoils one of them.
pub(super) const MARKS_AT: [u64; 2] = [0, 4096];

/// Called when a job is done.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What a log and the syncer know of each other.
pub(super) struct Syncing<S: Storage> {
    storage: S,
    wanted: Mutex<Wanted<S>>,
    marks: Mutex<Marks<S>>,
    synced: AtomicU64,
    failure: OnceLock<String>,
}

struct Wanted<S: Storage> {
    /// Files with something that is not synced, oldest first; the last one is written to.
    files: Vec<S::File>,
    /// Whether a file was made.
    names: bool,
    /// Everything before this position was written.
    position: u64,
    /// The segments before this one go, once that position is synced.
    oldest: u64,
    /// Whether to note how far it is synced.
    mark: bool,
    /// Whether a job is waiting to be run.
    queued: bool,
}

/// The newest mark, and the segments that are there.
struct Marks<S: Storage> {
    file: S::File,
    newest: Mark,
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
    /// Everything that `mark` says is synced; `file` is the segment that is written to.
    pub(super) fn new(storage: S, mark_file: S::File, mark: Mark, file: S::File) -> Self {
        let wanted = Wanted {
            files: vec![file],
            names: false,
            position: mark.synced,
            oldest: mark.oldest,
            mark: false,
            queued: false,
        };
        Self {
            storage,
            wanted: Mutex::new(wanted),
            marks: Mutex::new(Marks {
                file: mark_file,
                newest: mark,
            }),
            synced: AtomicU64::new(mark.synced),
            failure: OnceLock::new(),
        }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    pub(super) fn fail(&self, reason: String) {
        // The first failure is the one to report.
        let _ = self.failure.set(reason);
    }

    /// Another segment is written to from now on.
    pub(super) fn add_file(&self, file: S::File) {
        let mut wanted = lock(&self.wanted);
        wanted.files.push(file);
        wanted.names = true;
    }

    /// Wants everything before `position` synced, and then the segments before `oldest` gone. True
    /// when there is a job to be queued.
    pub(super) fn want(&self, position: u64, oldest: u64) -> bool {
        let mut wanted = lock(&self.wanted);
        (wanted.position, wanted.oldest) = (position, oldest);
        !std::mem::replace(&mut wanted.queued, true)
    }

    /// Wants it noted how far it is synced. True when there is a job to be queued.
    pub(super) fn want_mark(&self) -> bool {
        if lock(&self.marks).newest.synced == self.synced() {
            return false;
        }
        let mut wanted = lock(&self.wanted);
        wanted.mark = true;
        !std::mem::replace(&mut wanted.queued, true)
    }

    /// Syncs what was written until now.
    fn run(&self) {
        // After a failure nothing may look synced: the system may have dropped what it could not write.
        if self.failure().is_some() {
            return;
        }
        if let Err(error) = self.try_run() {
            self.fail(error.to_string());
        }
    }

    fn try_run(&self) -> io::Result<()> {
        let (files, names, position, oldest, mark) = {
            let mut wanted = lock(&self.wanted);
            wanted.queued = false;
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
        if position > self.synced() || names {
            for file in &files {
                file.sync()?;
            }
            if names {
                self.storage.sync()?;
            }
            // The last one goes on being written to.
            lock(&self.wanted)
                .files
                .drain(..files.len().saturating_sub(1));
            self.synced.store(position, Ordering::Release);
        }
        let mut marks = lock(&self.marks);
        let first = marks.newest.oldest;
        if mark || oldest > first {
            marks.write(position, oldest)?;
        }
        drop(marks);
        self.remove(first..oldest);
        Ok(())
    }

    fn remove(&self, segments: std::ops::Range<u64>) {
        for number in segments {
            let name = segment_name(number);
            // It costs room and nothing else; at the next start it goes.
            if let Err(error) = self.storage.remove(&name) {
                tracing::warn!(file = name, %error, "cannot remove old log segment");
            }
        }
    }
}

impl<S: Storage> Marks<S> {
    /// On stable storage when it returns: only then may segments go.
    fn write(&mut self, synced: u64, oldest: u64) -> io::Result<()> {
        self.newest = Mark {
            synced,
            oldest,
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
        job.run();
        wake();
    }
}

/// Runs the jobs that are waiting.
#[cfg(test)]
pub(super) fn run_waiting<S: Storage>(jobs: &Receiver<Arc<Syncing<S>>>) {
    while let Ok(job) = jobs.try_recv() {
        job.run();
    }
}
