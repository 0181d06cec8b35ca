//! The register of one machine: a folder with a synced file for each key.
//!
//! A swap locks its key among processes (`flock` on a file that is never removed), compares the present version,
//! writes and syncs the new file beside the value, exchanges both files and syncs the directory. The old file remains
//! beside the value, and the next swap overwrites the old file: so a swap needs no further space, and succeeds on a
//! full disk. A read waits for no lock, so that a process stopped in the middle of a swap blocks the swaps of one key
//! but no reads; the read marks its file (a shared `flock`), so that no swap overwrites the file, and syncs the
//! directory before returning the value.

mod folder;
mod format;
mod steps;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::key::{Key, check_value};
use crate::{RegisterError, Swap, Versioned};
use folder::Folder;
use steps::{Steps, System};

/// Longest wait for the disk unless set otherwise. A swap waits half of the time for other processes.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Operations at once, each in a thread: a disk that stands still must not take all there are.
const THREADS_MAX: usize = 8;

/// A register in files; clones share the register.
///
/// Needs a tokio runtime with time; the disk is used in its threads for blocking operations.
#[derive(Debug, Clone)]
pub struct FileRegister {
    folder: Arc<Folder>,
    threads: Arc<Semaphore>,
    timeout: Duration,
}

impl FileRegister {
    /// Opens a register, creating a missing directory. Blocks.
    ///
    /// # Errors
    ///
    /// [`RegisterError`], when the directory cannot be opened or created.
    pub fn open(folder: &Path) -> Result<Self, RegisterError> {
        Self::with(folder, Box::new(System))
    }

    fn with(folder: &Path, steps: Box<dyn Steps>) -> Result<Self, RegisterError> {
        Ok(Self {
            folder: Arc::new(Folder::open(folder, steps)?),
            threads: Arc::new(Semaphore::new(THREADS_MAX)),
            timeout: TIMEOUT,
        })
    }

    /// Sets the longest wait for the disk; 5 s unless set.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// As [`Register::read`](crate::Register::read).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn read(&self, key: &str) -> Result<Option<Versioned>, RegisterError> {
        let key = Key::new(key)?;
        self.run(false, move |folder| folder.read(&key)).await
    }

    /// As [`Register::swap`](crate::Register::swap).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; it says whether the swap may have taken effect, or may yet.
    pub async fn swap(
        &self,
        key: &str,
        expected: Option<u64>,
        value: &[u8],
    ) -> Result<Swap, RegisterError> {
        let key = Key::new(key)?;
        check_value(value)?;
        let value = value.to_owned();
        let deadline = Instant::now() + self.timeout / 2;
        let swap = move |folder: &Folder| folder.swap(&key, expected, &value, deadline);
        self.run(true, swap).await
    }

    /// As [`Register::list`](crate::Register::list).
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, RegisterError> {
        let prefix = prefix.to_owned();
        self.run(false, move |folder| folder.list(&prefix)).await
    }

    /// Runs `operation` in a separate thread; the event loop goes on meanwhile.
    async fn run<T: Send + 'static>(
        &self,
        changes: bool,
        operation: impl FnOnce(&Folder) -> Result<T, RegisterError> + Send + 'static,
    ) -> Result<T, RegisterError> {
        let waited = timeout(self.timeout, Arc::clone(&self.threads).acquire_owned()).await;
        let Ok(Ok(permit)) = waited else {
            let what = "earlier operations still wait for the disk";
            return Err(RegisterError::unreachable(what));
        };
        let folder = Arc::clone(&self.folder);
        let running = tokio::task::spawn_blocking(move || {
            let result = operation(&folder);
            drop(permit);
            result
        });
        let what = match timeout(self.timeout, running).await {
            Ok(Ok(result)) => return result,
            Ok(Err(_)) => "the thread of the operation was stopped".to_owned(),
            Err(_) => format!("the disk did not answer within {:?}", self.timeout),
        };
        Err(if changes {
            RegisterError::unknown(what)
        } else {
            RegisterError::unreachable(what)
        })
    }
}
