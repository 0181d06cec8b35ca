//! The writer: a handle for callers, and a thread that writes and syncs for all callers that wait.

mod current;
mod disk;
mod gathering;
mod options;
pub(crate) mod repair;
mod shared;
mod thread;

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use tokio::sync::{Semaphore, oneshot};
use vere_units::Timestamp;

use self::disk::{Disk, RealDisk};
use self::shared::{Job, Shared};
use self::thread::Writer;
use crate::clock::wall_clock;
use crate::entry::Entry;
use crate::error::{ArchiveError, OpenError};
use crate::format::{META_OCTETS_MAX, encoded_len};
use crate::keep::{Keeper, Kept};

pub use self::options::{ArchiveOptions, Figures};

/// The file whose lock says that a process writes.
const LOCK_NAME: &str = "lock";
/// The unit in which waiting octets are counted.
const PERMIT_OCTETS: u64 = 1 << 10;

/// An archive, open for writing by one process. Dropping it writes what waits and ends the thread.
#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    permits: u32,
    thread: Option<JoinHandle<()>>,
    /// Removes old days in a thread of its own: the removal of large files takes time.
    _keeper: Keeper,
    _lock: Lock,
}

/// The locked file.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // A child between fork and exec has the file too, and would keep the lock.
        let _ = self.0.unlock();
    }
}

impl Archive {
    /// Opens the archive in a directory, which is made if it is missing. Repairs the segments that a crash has left
    /// unfinished, and starts the threads. Blocks until the repair has ended, so that no entry is written meanwhile: seconds
    /// for each gigabyte of unfinished segments ([`ArchiveOptions::alive`]).
    ///
    /// # Errors
    ///
    /// Another process writes there; the directory cannot be made, read or repaired; no thread can be started.
    pub fn open(folder: &Path, options: ArchiveOptions) -> Result<Self, OpenError> {
        Self::open_on(folder, options, Box::new(RealDisk), wall_clock)
    }

    fn open_on(
        folder: &Path,
        options: ArchiveOptions,
        disk: Box<dyn Disk>,
        clock: fn() -> Timestamp,
    ) -> Result<Self, OpenError> {
        let failed = OpenError::at(folder);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let lock = lock(folder)?;
        repair::repair(folder, clock(), options.alive)?;
        let keeper = Keeper::start(Kept::Days(folder.to_owned()), options.keep, clock);
        let keeper = keeper.map_err(OpenError::at(folder))?;
        let permits = options.waiting_octets_max.as_u64().div_ceil(PERMIT_OCTETS);
        let permits = u32::try_from(permits)
            .unwrap_or(u32::MAX >> 4)
            .clamp(1, u32::MAX >> 4);
        let shared = Arc::new(Shared::default());
        let writer = Writer::new(folder, &options, disk, Arc::clone(&shared));
        let thread = Builder::new()
            .name("archive".to_owned())
            .spawn(move || writer.run());
        Ok(Self {
            folder: folder.to_owned(),
            shared,
            room: Arc::new(Semaphore::new(permits as usize)),
            permits,
            thread: Some(thread.map_err(OpenError::at(folder))?),
            _keeper: keeper,
            _lock: lock,
        })
    }

    /// Adds an entry. The future does nothing before it is polled; it is ready when the entry is on stable storage
    /// ([`ArchiveOptions::sync_within`]). It waits first for room in memory. A dropped future may have added the entry.
    ///
    /// # Errors
    ///
    /// The texts are too long; the disk is full or failed, and the entry is not in the archive; the archive is closed.
    pub async fn add(&self, entry: Entry) -> Result<(), ArchiveError> {
        let texts = encoded_len(&entry);
        if texts > META_OCTETS_MAX {
            let (found, max) = (texts, META_OCTETS_MAX);
            return Err(ArchiveError::TextsTooLong { found, max });
        }
        let octets = texts
            .saturating_add(entry.octets_len())
            .div_ceil(PERMIT_OCTETS);
        let permits = u32::try_from(octets)
            .unwrap_or(u32::MAX)
            .clamp(1, self.permits);
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await;
        let room = room.map_err(|_| ArchiveError::Closed)?;
        let (done, ready) = oneshot::channel();
        {
            let mut state = self.shared.lock();
            if state.stop || state.ended {
                return Err(ArchiveError::Closed);
            }
            state.jobs.push_back(Job { entry, done, room });
            if state.jobs.len() == 1 {
                self.shared.work.notify_one();
            }
        }
        ready.await.unwrap_or(Err(ArchiveError::Closed))
    }

    /// The directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was done since the opening.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.shared.counts;
        Figures {
            entries: of(&counts.entries),
            octets: of(&counts.octets),
            failed: of(&counts.failed),
            syncs: of(&counts.syncs),
            sync_micros: of(&counts.sync_micros),
        }
    }

    /// Writes what waits, ends the segment and the threads. Blocks as long as the disk takes.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// Takes the lock of a directory for this process.
fn lock(folder: &Path) -> Result<Lock, OpenError> {
    let path = folder.join(LOCK_NAME);
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = open.map_err(OpenError::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(OpenError::at(&path)(error)),
    }
}
