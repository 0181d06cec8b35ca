//! The thread that owns the store, and the thread that syncs the store's log.
//!
//! Questions are closures. An answer is sent once everything that the question saw or changed is safe on disk.
//! Questions that wait during a sync share the next sync.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use vere_disk::log::Directory as LogDirectory;
use vere_settings::MailStore as Plan;
use vere_store::{Committed, Counts, Position, ReclaimOutcome, StoreError, SyncJob, SyncOutcome};

use super::holds::Holds;
use super::index::{Indexer, SharedIndex};
use super::keeping::Policy;
use super::mail_store::MailStore;
use super::mark::Mark;
use super::metrics::Figures;
use super::steps::at_once;
use super::upkeep::Upkeep;
use super::used::Used;
use super::watchers::Watchers;
use vere_parsing::Processes;

/// How often the metadata engine persists its data, so that a start replays little.
const PERSIST_INTERVAL: Duration = Duration::from_secs(30);

/// Messages taken from the channel before a sync may begin: waiting answers must not wait for a channel that is never
/// empty.
const TURN_MAX: usize = 64;

type Job = Box<dyn FnOnce(&mut StoreThread) + Send>;
type Waiter = Box<dyn FnOnce(Result<Position, StoreError>) + Send>;

enum Message {
    Job(Job),
    Synced(SyncOutcome, Vec<Waiter>),
    Reclaimed(ReclaimOutcome<LogDirectory>),
    Stop,
}

/// A sync with its waiters. Waiters get their answers as soon as the sync ends, before the store does.
struct Sync {
    job: SyncJob<LogDirectory>,
    waiting: Vec<Waiter>,
}

impl Sync {
    /// Runs the sync. If the sync failed, returns the waiters with the outcome.
    fn run(self, mark: &mut Option<Mark>) -> (SyncOutcome, Vec<Waiter>) {
        let outcome = self.job.run();
        match outcome.synced() {
            None => (outcome, self.waiting),
            Some(synced) => {
                if let Some(mark) = mark {
                    mark.reached(synced);
                }
                for waiter in self.waiting {
                    waiter(Ok(synced));
                }
                (outcome, Vec::new())
            }
        }
    }
}

/// Sends questions to the thread that owns the store.
#[derive(Debug, Clone)]
pub(super) struct Keeper {
    sender: Sender<Message>,
    watchers: Arc<Watchers>,
    index: SharedIndex,
    indexer: Indexer,
    figures: Figures,
    processes: Processes,
    holds: Holds,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Job(_) => "Job",
            Self::Synced(..) => "Synced",
            Self::Reclaimed(_) => "Reclaimed",
            Self::Stop => "Stop",
        })
    }
}

/// The end of the thread that owns the store.
#[derive(Debug)]
pub(super) struct End {
    thread: JoinHandle<()>,
    reason: oneshot::Receiver<StoreError>,
}

impl End {
    /// Waits until the store fails: a failed store accepts no change until it is opened again.
    pub(super) async fn failed(&mut self) -> StoreError {
        let reason = (&mut self.reason).await;
        reason.unwrap_or_else(|_| StoreError::Failed("its thread has ended".to_owned()))
    }

    /// Waits until the store is closed, after [`Keeper::stop`].
    pub(super) fn join(self) {
        let _ = self.thread.join();
    }
}

impl Keeper {
    /// Starts the threads that own the store, sync its log, and reclaim room in the store's folder as the plan says.
    /// The mark records how far the log got.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub(super) fn start(
        (mut store, mut mark): (MailStore, Option<Mark>),
        (index, indexer): (SharedIndex, Indexer),
        (plan, folder): (Plan, PathBuf),
        figures: Figures,
        processes: Processes,
    ) -> io::Result<(Self, End)> {
        let (sender, receiver) = channel();
        let (to_sync, jobs) = channel::<Sync>();
        let back = sender.clone();
        let timed = figures.clone();
        Builder::new()
            .name("store-sync".to_owned())
            .spawn(move || {
                for job in jobs {
                    let began = Instant::now();
                    let (outcome, waiting) = job.run(&mut mark);
                    timed.synced(began.elapsed());
                    if back.send(Message::Synced(outcome, waiting)).is_err() {
                        return;
                    }
                }
            })?;
        let back = sender.clone();
        let done = move |outcome| back.send(Message::Reclaimed(outcome)).is_ok();
        let mut used = Used::read(&folder);
        used.begin(&mut store);
        let mut upkeep = Upkeep::start(plan, folder, &mut store, figures.clone(), done)?;
        let holds = Holds::default();
        upkeep.heed(holds.clone());
        let watchers = Arc::new(Watchers::default());
        let mut owner = StoreThread {
            store,
            waiting: Vec::new(),
            syncing: false,
            was_asked: false,
            to_sync,
            watchers: Arc::clone(&watchers),
            indexer: indexer.clone(),
            upkeep,
            used,
            figures: figures.clone(),
            counted: Counts::default(),
            persisted: Instant::now(),
            failed: None,
        };
        let (tell, reason) = oneshot::channel();
        let thread = Builder::new().name("store".to_owned()).spawn(move || {
            owner.run(&receiver);
            if let Some(error) = owner.failed {
                let _ = tell.send(error);
            }
        })?;
        let keeper = Self {
            sender,
            watchers,
            index,
            indexer,
            figures,
            processes,
            holds,
        };
        Ok((keeper, End { thread, reason }))
    }

    /// Returns the search index of the mailboxes.
    pub(super) const fn index(&self) -> &SharedIndex {
        &self.index
    }

    /// Returns the counters.
    pub(super) const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Returns the processes that parse and decode messages.
    pub(super) const fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Asks the store, and waits until the answer is safe.
    ///
    /// # Errors
    /// The error of the store, or that the store is closed.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut MailStore) -> Result<Committed<T>, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.put(question)?.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Asks the store from a thread that may block, and waits until the answer is safe.
    ///
    /// # Errors
    /// As [`Keeper::ask`].
    pub(super) fn ask_blocking<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut MailStore) -> Result<Committed<T>, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answer = self.put(question)?.blocking_recv();
        answer.unwrap_or_else(|_| Err(closed()))
    }

    fn put<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut MailStore) -> Result<Committed<T>, StoreError> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = job(question, |value| drop(reply.send(value)));
        self.sender.send(Message::Job(job)).map_err(|_| closed())?;
        Ok(answer)
    }

    /// Asks the store, and computes a result from the answer. `at_once` runs on the store's thread: its work must be
    /// small and wait for nothing, not even a sync. Where `at_once` returns `None`, `then` runs on a thread that may
    /// take its time. The answer goes to that thread directly, without a detour over the connections' thread.
    ///
    /// # Errors
    /// As [`Keeper::ask`].
    pub(super) async fn ask_then<T: Send + 'static, R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut MailStore) -> Result<Committed<T>, StoreError> + Send + 'static,
        at_once: impl FnOnce(&T) -> Option<R> + Send + 'static,
        then: impl FnOnce(T) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (reply, answer) = oneshot::channel();
        let runtime = Handle::current();
        let later = move |reply: oneshot::Sender<_>, value: Result<T, StoreError>| match value {
            Ok(value) => drop(runtime.spawn_blocking(move || {
                // The caller may have stopped waiting.
                let _ = reply.send(Ok(then(value)));
            })),
            Err(error) => drop(reply.send(Err(error))),
        };
        let job: Job = Box::new(move |owner| match question(&mut owner.store) {
            Err(error) => later(reply, Err(error)),
            Ok(committed) => match committed.when(owner.store.synced()) {
                Ok(value) => match at_once(&value) {
                    Some(done) => drop(reply.send(Ok(done))),
                    None => later(reply, Ok(value)),
                },
                // The syncing thread notifies waiters, and has no time for more work.
                Err(committed) => owner.tell_when_safe(committed, move |value| later(reply, value)),
            },
        });
        self.sender.send(Message::Job(job)).map_err(|_| closed())?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Asks the store a question with a value that `make` first computes on a thread that may take its time.
    ///
    /// # Errors
    /// As [`Keeper::ask`], and the errors of `make`.
    pub(super) async fn ask_with<P: Send + 'static, T: Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<P, StoreError> + Send + 'static,
        question: impl FnOnce(&mut MailStore, P) -> Result<Committed<T>, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let sender = self.sender.clone();
        // The question goes to the store directly, without a detour over the connections' thread.
        drop(tokio::task::spawn_blocking(move || match make() {
            Err(error) => drop(reply.send(Err(error))),
            Ok(made) => {
                let tell = |value| drop(reply.send(value));
                let job = job(move |store| question(store, made), tell);
                // If the store is closed, the caller notices the dropped reply.
                let _ = sender.send(Message::Job(job));
            }
        }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Applies the settings of expunged messages.
    pub(super) fn set_keeping(&self, policy: Policy) {
        let job: Job = Box::new(move |owner| owner.upkeep.set_keeping(policy, &mut owner.store));
        let _ = self.sender.send(Message::Job(job));
    }

    /// Closes the store after all earlier messages.
    pub(super) fn stop(&self) {
        let _ = self.sender.send(Message::Stop);
    }
}

fn closed() -> StoreError {
    StoreError::Failed("the store is closed".to_owned())
}

fn job<T: Send + 'static>(
    question: impl FnOnce(&mut MailStore) -> Result<Committed<T>, StoreError> + Send + 'static,
    tell: impl FnOnce(Result<T, StoreError>) + Send + 'static,
) -> Job {
    Box::new(move |owner| match question(&mut owner.store) {
        Err(error) => tell(Err(error)),
        Ok(committed) => owner.tell_when_safe(committed, tell),
    })
}

/// The thread that owns the store.
struct StoreThread {
    store: MailStore,
    waiting: Vec<(Position, Waiter)>,
    /// Whether a sync is under way.
    syncing: bool,
    /// Whether a question came since the last sync began.
    was_asked: bool,
    to_sync: Sender<Sync>,
    watchers: Arc<Watchers>,
    indexer: Indexer,
    upkeep: Upkeep,
    used: Used,
    figures: Figures,
    /// Counts at the end of the last turn.
    counted: Counts,
    persisted: Instant,
    failed: Option<StoreError>,
}

impl StoreThread {
    fn run(&mut self, receiver: &Receiver<Message>) {
        let mut stopping = false;
        while self.failed.is_none() && !(stopping && self.waiting.is_empty() && !self.syncing) {
            let patience = match self.used.is_waiting() && !stopping {
                true => Duration::ZERO,
                false => PERSIST_INTERVAL.min(self.upkeep.patience()),
            };
            let first = match receiver.recv_timeout(patience) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if first.is_none() && !stopping {
                self.used.step(&mut self.store);
            }
            stopping |= self.turn(first.into_iter().chain(receiver.try_iter()));
            self.persist(stopping);
            let counts = self.store.counts();
            self.figures.counted(&self.counted, &counts);
            self.counted = counts;
            if stopping {
                self.upkeep.stop();
            } else if let Err(error) = self.upkeep.step(&mut self.store) {
                self.fail(&error);
            } else {
                self.sync();
            }
        }
    }

    /// Handles a bounded number of messages; returns whether the store should stop.
    fn turn(&mut self, messages: impl Iterator<Item = Message>) -> bool {
        let mut stopping = false;
        for message in messages.take(TURN_MAX) {
            match message {
                Message::Job(job) => {
                    self.was_asked = true;
                    job(self);
                }
                Message::Synced(outcome, waiting) => {
                    self.synced(outcome, waiting);
                    // The disk is free: earlier questions do not wait for later messages.
                    self.sync();
                }
                Message::Reclaimed(outcome) => self.upkeep.finish(&mut self.store, outcome),
                Message::Stop => stopping = true,
            }
        }
        self.sync();
        stopping
    }

    fn tell_when_safe<T: Send + 'static>(
        &mut self,
        committed: Committed<T>,
        tell: impl FnOnce(Result<T, StoreError>) + Send + 'static,
    ) {
        let position = committed.position();
        match committed.when(self.store.synced()) {
            Ok(value) => tell(Ok(value)),
            Err(committed) => {
                let waiter: Waiter = Box::new(move |synced| {
                    tell(synced.and_then(|synced| {
                        committed
                            .when(synced)
                            .map_err(|_| StoreError::Failed("not synced so far".to_owned()))
                    }));
                });
                self.waiting.push((position, waiter));
            }
        }
    }

    /// Whether the log has changes to sync that no session waits for: claims of recent messages, and changes that the
    /// upkeep logged.
    fn is_unsafe(&mut self) -> bool {
        let is_behind = self.store.synced() < self.store.end();
        (self.was_asked && is_behind) || self.upkeep.take_unsafe()
    }

    fn sync(&mut self) {
        if self.waiting.is_empty() && (self.syncing || !self.is_unsafe()) {
            return;
        }
        match self.store.sync_job() {
            Ok(Some(job)) => {
                let upto = job.upto();
                let of_job = |(position, _): &mut (Position, Waiter)| *position <= upto;
                let waiting = self.waiting.extract_if(.., of_job);
                let waiting = waiting.map(|(_, waiter)| waiter).collect();
                self.was_asked = false;
                self.syncing = self.to_sync.send(Sync { job, waiting }).is_ok();
            }
            Ok(None) => {}
            Err(error) => self.fail(&error),
        }
    }

    fn synced(&mut self, outcome: SyncOutcome, waiting: Vec<Waiter>) {
        self.syncing = false;
        let position = self.store.end();
        let unsafe_yet = waiting.into_iter().map(|waiter| (position, waiter));
        self.waiting.extend(unsafe_yet);
        match self.store.finish_sync(outcome) {
            Ok(published) => {
                let (safe, waiting) = std::mem::take(&mut self.waiting)
                    .into_iter()
                    .partition(|(position, _)| *position <= published.synced);
                self.waiting = waiting;
                let safe: Vec<(Position, Waiter)> = safe;
                for (_, waiter) in safe {
                    waiter(Ok(published.synced));
                }
                for mailbox in &published.mailboxes {
                    self.watchers.tell(*mailbox);
                    let status = self.store.status(*mailbox).ok();
                    let status = status.and_then(|status| at_once(&self.store, status).ok());
                    let uid_next = status.map(|status| status.uid_next.get());
                    self.indexer.changed(*mailbox, uid_next);
                }
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Fails the store: answers all waiters that their changes are not safe and never will be.
    fn fail(&mut self, error: &StoreError) {
        self.failed = Some(error.clone());
        for (_, waiter) in self.waiting.drain(..) {
            waiter(Err(error.clone()));
        }
    }

    fn persist(&mut self, stopping: bool) {
        if !stopping && self.persisted.elapsed() < PERSIST_INTERVAL {
            return;
        }
        self.persisted = Instant::now();
        if let Err(error) = self.store.persist() {
            tracing::error!(%error, "metadata cannot be made to last; the next start replays more");
        }
        self.upkeep.note(&self.store);
        self.used.note(&self.store);
    }
}

mod copying;
mod notices;
pub(super) use copying::held_log;
#[cfg(test)]
mod tests;
