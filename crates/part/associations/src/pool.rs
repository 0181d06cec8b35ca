//! Associations with one peer, for its callers.
//!
//! A lane is a place for one association, with a task. A permanent lane opens its association at once and again after an end; a
//! lane on demand opens it for an APDU, and releases it when it is idle. A pool has no queue: callers wait for a free lane in
//! their order, and what becomes of an APDU that was not transferred is theirs to decide.

mod lane;
mod terms;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use vere_osi::rtse::Broken;
use vere_osi::session::Exception;

use crate::bounds::Wait;
use crate::end::End;
use crate::initiate::{OpenError, initiate};
use crate::names::Names;
use crate::open::{Next, OpenAssociation};
use crate::outcome::{NotTransferred, Outcome};

pub use lane::ReservedLane;
use lane::{Guard, Job, JobTask, Shared, Transfer, lane};
pub use terms::{Begun, Lent, PoolError, PoolSettings};

/// The priority with which a lane asks for the turn.
const TURN_PRIORITY: u32 = 1;

/// Associations with one peer. Their connections close when the value is dropped.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Pool {
    /// Starts a pool, within a tokio runtime. `incoming` gets each association over which the peer sends; without it transfers of the peer are refused.
    #[must_use]
    pub fn start(
        settings: PoolSettings,
        names: Arc<Names>,
        incoming: Option<mpsc::Sender<Lent>>,
    ) -> Self {
        let most = settings.most.max(1);
        let permanent = settings.permanent;
        let (lanes, jobs): (Vec<_>, Vec<_>) = (0..most).map(|_| lane()).unzip();
        let shared = Arc::new(Shared {
            settings,
            names,
            lanes: Mutex::new(lanes),
            free: Arc::new(Semaphore::new(most)),
            incoming,
        });
        let spawn = |(lane, jobs)| {
            let task = Task {
                shared: Arc::clone(&shared),
                lane,
                jobs,
                permanent: lane < permanent,
                open: None,
            };
            tokio::spawn(task.run())
        };
        let tasks = jobs.into_iter().enumerate().map(spawn).collect();
        Self { shared, tasks }
    }

    /// Lanes that are free now.
    #[must_use]
    pub fn free(&self) -> usize {
        self.shared.free.available_permits()
    }

    /// Associations that are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.lanes().iter().filter(|lane| lane.open).count()
    }

    /// Transfers an APDU over a free lane; waits until one is free.
    ///
    /// # Errors
    ///
    /// [`PoolError`] without an association.
    pub async fn transfer(&self, apdu: Vec<Bytes>) -> Result<Outcome, PoolError> {
        self.give(apdu, None).await
    }

    /// Settles a transfer that broke off, over a free lane.
    ///
    /// # Errors
    ///
    /// [`PoolError`] without an association; the transfer is as unsettled as before.
    pub async fn settle(&self, broken: Broken, apdu: Vec<Bytes>) -> Result<Outcome, PoolError> {
        self.give(apdu, Some(broken)).await
    }

    /// Releases the associations and ends the pool. Transfers in progress come to their ends before.
    pub async fn close(mut self) {
        self.shared.free.close();
        self.shared.lanes().clear();
        for task in std::mem::take(&mut self.tasks) {
            // A lane that has panicked has no association either.
            let _ended = task.await;
        }
    }

    async fn give(&self, apdu: Vec<Bytes>, broken: Option<Broken>) -> Result<Outcome, PoolError> {
        self.lane().await?.give(apdu, broken).await
    }

    /// Takes a lane for several transfers, and opens its association; waits until a lane is free.
    ///
    /// # Errors
    ///
    /// [`PoolError`] without an association.
    pub async fn reserve(&self) -> Result<ReservedLane, PoolError> {
        let lane = self.lane().await?;
        let (answer, answered) = oneshot::channel();
        lane.put(JobTask::Open(answer))?;
        match answered.await {
            Ok(Ok(())) => Ok(lane),
            Ok(Err(error)) => Err(PoolError::NotOpen(error)),
            Err(_) => Err(PoolError::Ended),
        }
    }

    async fn lane(&self) -> Result<ReservedLane, PoolError> {
        let free = Arc::clone(&self.shared.free);
        let permit = free.acquire_owned().await.map_err(|_| PoolError::Ended)?;
        let (lane, jobs) = self.shared.take().ok_or(PoolError::Ended)?;
        let guard = Guard {
            shared: Arc::clone(&self.shared),
            lane,
            _permit: permit,
        };
        Ok(ReservedLane {
            jobs,
            guard: Arc::new(guard),
        })
    }
}

/// The task of a lane.
struct Task {
    shared: Arc<Shared>,
    lane: usize,
    jobs: mpsc::Receiver<Job>,
    permanent: bool,
    open: Option<OpenAssociation>,
}

impl Task {
    async fn run(mut self) {
        let mut again = Instant::now();
        loop {
            if let Some(open) = &mut self.open {
                tokio::select! {
                    biased;
                    next = open.next() => self.happened(next).await,
                    job = self.jobs.recv() => match job {
                        Some(job) => self.work(job).await,
                        None => return self.release().await,
                    },
                }
            } else {
                tokio::select! {
                    job = self.jobs.recv() => match job {
                        Some(job) => self.work(job).await,
                        None => return,
                    },
                    () = sleep_until(again), if self.permanent => {
                        again = Instant::now() + self.shared.settings.pause;
                        // The next attempt follows after the pause; a job has its own attempt before.
                        let _opened = self.connect().await;
                    }
                }
            }
        }
    }

    async fn connect(&mut self) -> Result<(), OpenError> {
        let (open, _) = initiate(&self.shared.settings.peer, self.shared.names.next()).await?;
        self.set(Some(open));
        Ok(())
    }

    fn set(&mut self, open: Option<OpenAssociation>) {
        let is_open = open.is_some();
        self.shared.with(self.lane, |lane| lane.open = is_open);
        self.open = open;
    }

    async fn work(&mut self, job: Job) {
        let Job { task, guard } = job;
        // A caller that waits no more has given its APDU up: nobody is told.
        match task {
            JobTask::Open(answer) => {
                let opened = self.opened().await;
                drop(guard);
                let _told = answer.send(opened);
            }
            JobTask::Transfer(job) => {
                let reused = self.open.is_some();
                let mut done = self.attempt(&job).await;
                // The peer may have closed an idle association a moment ago.
                if reused && let Ok(Outcome::NotTransferred(NotTransferred::Ended(_), None)) = done
                {
                    done = self.attempt(&job).await;
                }
                drop(guard);
                let _told = job.answer.send(done);
            }
        }
    }

    async fn opened(&mut self) -> Result<(), OpenError> {
        match self.open {
            Some(_) => Ok(()),
            None => self.connect().await,
        }
    }

    async fn attempt(&mut self, job: &Transfer) -> Result<Outcome, PoolError> {
        self.opened().await.map_err(PoolError::NotOpen)?;
        let outcome = match self.turn().await {
            Err(end) => Outcome::broken(end, job.broken.clone()),
            Ok(()) => match (&mut self.open, &job.broken) {
                (None, broken) => Outcome::broken(End::Closed, broken.clone()),
                (Some(open), None) => open.transfer(&job.apdu).await,
                (Some(open), Some(broken)) => open.settle(broken, &job.apdu).await,
            },
        };
        self.forget_ended();
        Ok(outcome)
    }

    fn forget_ended(&mut self) {
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.ended().is_some())
        {
            self.set(None);
        }
    }

    /// Gets the turn; transfers of the peer that come first are received by the host.
    async fn turn(&mut self) -> Result<(), End> {
        let mut asked = false;
        loop {
            let Some(open) = &mut self.open else {
                return Err(End::Closed);
            };
            if open.has_turn() {
                return Ok(());
            }
            if !asked {
                // An association that has ended meanwhile is told by the next event.
                let _asked = open.please_turn(TURN_PRIORITY).await;
                asked = true;
            }
            let limit = self.shared.settings.peer.bounds.turn;
            match timeout(limit, open.next()).await.unwrap_or(Next::Idle) {
                Next::Idle => {
                    self.abort().await;
                    return Err(End::Late(Wait::Turn));
                }
                Next::Ended(end) => {
                    self.set(None);
                    return Err(end);
                }
                next => self.happened(next).await,
            }
        }
    }

    async fn happened(&mut self, next: Next) {
        match next {
            Next::Incoming(activity) => self.lend(Begun::Transfer(activity)).await,
            Next::Resume(resumption) => self.lend(Begun::Rest(resumption)).await,
            Next::TurnWanted(_) => {
                if let Some(open) = &mut self.open {
                    // A request that crossed a change of the turn is void.
                    let _given = open.give_turn().await;
                }
            }
            Next::Idle if !self.permanent => self.release().await,
            Next::Ended(_) => self.set(None),
            Next::Idle | Next::Turn | Next::Reconfirmed | Next::GivenUp => {}
        }
        self.forget_ended();
    }

    async fn release(&mut self) {
        let open = self.open.take();
        self.set(None);
        if let Some(open) = open {
            // Without the turn the association is aborted.
            let _end = open.release().await;
        }
    }

    async fn abort(&mut self) {
        let open = self.open.take();
        self.set(None);
        if let Some(open) = open {
            open.abort().await;
        }
    }

    /// Lends the association to the host, which receives a transfer of the peer, and waits for the end of the loan.
    async fn lend(&mut self, begun: Begun) {
        let Some(open) = self.open.take() else {
            return;
        };
        self.shared.with(self.lane, |lane| lane.receiving = true);
        let (back, given_back) = oneshot::channel();
        let lent = Lent { open, begun, back };
        let open = match &self.shared.incoming {
            None => Some(refused(lent, Exception::LocalUserError).await),
            Some(incoming) => match incoming.send(lent).await {
                // A host that drops the association has ended it.
                Ok(()) => given_back.await.ok(),
                Err(SendError(lent)) => {
                    Some(refused(lent, Exception::ReceivingAbilityJeopardized).await)
                }
            },
        };
        self.shared.with(self.lane, |lane| lane.receiving = false);
        self.set(open);
    }
}

/// Refuses a transfer that no host receives.
async fn refused(lent: Lent, why: Exception) -> OpenAssociation {
    let Lent {
        mut open, begun, ..
    } = lent;
    let reason = match begun {
        Begun::Transfer(_) => why,
        // No octets are kept: the peer has to send the unit anew.
        Begun::Rest(_) => Exception::UnrecoverableProceduralError,
    };
    // The peer may have gone meanwhile, which the next event tells.
    let _refused = open.refuse(reason).await;
    open
}
