//! What the handle and the thread share.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::entry::Entry;
use crate::error::ArchiveError;

/// An entry and its caller.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) entry: Entry,
    pub(super) done: oneshot::Sender<Result<(), ArchiveError>>,
    /// Counted as long as the entry is in memory.
    pub(super) room: OwnedSemaphorePermit,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) work: Condvar,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) jobs: VecDeque<Job>,
    /// No further entries are accepted.
    pub(super) stop: bool,
    /// The thread has ended.
    pub(super) ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) entries: AtomicU64,
    pub(super) octets: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) sync_micros: AtomicU64,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
