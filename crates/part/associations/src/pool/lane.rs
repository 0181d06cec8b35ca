//! Lanes of a pool: their work, and a lane that a caller has for several transfers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use vere_osi::rtse::Broken;

use super::terms::{Lent, PoolError, PoolSettings};
use crate::initiate::OpenError;
use crate::names::Names;
use crate::outcome::Outcome;

/// Work for a lane. The lane is taken as long as anybody has its guard.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) task: JobTask,
    pub(super) guard: Arc<Guard>,
}

#[derive(Debug)]
pub(super) enum JobTask {
    /// Open an association, unless one is open.
    Open(oneshot::Sender<Result<(), OpenError>>),
    Transfer(Transfer),
}

#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) apdu: Vec<Bytes>,
    pub(super) broken: Option<Broken>,
    pub(super) answer: oneshot::Sender<Result<Outcome, PoolError>>,
}

/// A taken lane, which becomes free when the last owner drops the guard.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) shared: Arc<Shared>,
    pub(super) lane: usize,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.with(self.lane, |lane| lane.busy = false);
    }
}

/// A lane of a pool for several transfers, one behind the other. Dropped, it is free again, and its association stays open.
#[derive(Debug)]
pub struct ReservedLane {
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) guard: Arc<Guard>,
}

impl ReservedLane {
    /// Transfers an APDU. A lane whose association has ended opens another.
    ///
    /// # Errors
    ///
    /// [`PoolError`] without an association.
    pub async fn transfer(&mut self, apdu: Vec<Bytes>) -> Result<Outcome, PoolError> {
        self.give(apdu, None).await
    }

    /// Settles a transfer that broke off.
    ///
    /// # Errors
    ///
    /// [`PoolError`] without an association; the transfer is as unsettled as before.
    pub async fn settle(&mut self, broken: Broken, apdu: Vec<Bytes>) -> Result<Outcome, PoolError> {
        self.give(apdu, Some(broken)).await
    }

    pub(super) async fn give(
        &self,
        apdu: Vec<Bytes>,
        broken: Option<Broken>,
    ) -> Result<Outcome, PoolError> {
        let (answer, answered) = oneshot::channel();
        // From here on the lane is busy until the job is done, whether the caller waits or not.
        self.put(JobTask::Transfer(Transfer {
            apdu,
            broken,
            answer,
        }))?;
        answered.await.map_err(|_| PoolError::Ended)?
    }

    pub(super) fn put(&self, task: JobTask) -> Result<(), PoolError> {
        let job = Job {
            task,
            guard: Arc::clone(&self.guard),
        };
        self.jobs.try_send(job).map_err(|_| PoolError::Ended)
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) jobs: mpsc::Sender<Job>,
    pub(super) busy: bool,
    pub(super) open: bool,
    /// Whether the host has the association, to receive a transfer of the peer.
    pub(super) receiving: bool,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) settings: PoolSettings,
    pub(super) names: Arc<Names>,
    pub(super) lanes: Mutex<Vec<Lane>>,
    pub(super) free: Arc<Semaphore>,
    pub(super) incoming: Option<mpsc::Sender<Lent>>,
}

impl Shared {
    pub(super) fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with(&self, lane: usize, change: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.lanes().get_mut(lane) {
            change(lane);
        }
    }

    /// Takes a free lane: one with an open association before one without, and one that receives last of all.
    pub(super) fn take(&self) -> Option<(usize, mpsc::Sender<Job>)> {
        let mut lanes = self.lanes();
        let free = lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.busy);
        let (place, lane) = free.min_by_key(|(_, lane)| (lane.receiving, !lane.open))?;
        lane.busy = true;
        Some((place, lane.jobs.clone()))
    }
}

pub(super) fn lane() -> (Lane, mpsc::Receiver<Job>) {
    let (jobs, receiver) = mpsc::channel(1);
    let lane = Lane {
        jobs,
        busy: false,
        open: false,
        receiving: false,
    };
    (lane, receiver)
}
