//! The processes that parse messages: how many there are, and who gets one.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vere_mime::Parsed;
use vere_mime::wire::Scope;
use vere_sandbox::Layers;
use vere_store::{Prepared, StoreError};

use super::process::{Launch, Process, Trouble};

/// Busy processes at most, on a machine with many processors.
const BUSY_MAX: usize = 4;
/// Processes at most. Messages do not wait for processes that have been silent for [`SLOW`].
const PROCESSES_MAX: usize = 16;
/// A message that takes longer may never end: other messages get a process beside the slow process.
const SLOW: Duration = Duration::from_millis(500);
/// Failed starts after which no process counts as available, and the pause after each.
const LAUNCHES: u32 = 5;
const LAUNCH_PAUSE: Duration = Duration::from_millis(20);
/// Killed processes after which a message is put off, and the pause after each.
const KILLS_MAX: u32 = 3;
const KILL_PAUSE: Duration = Duration::from_millis(100);
/// Attempts at a message, in this order: the first process may have ended for another reason.
const ATTEMPTS: [Scope; 3] = [Scope::Whole, Scope::Whole, Scope::Header];

/// Result of asking a process.
#[derive(Debug)]
pub(super) enum Attempt<T> {
    /// Its answer.
    Answered(T),
    /// The process did not answer in time. The message may be the reason, or a busy machine: the limit of processor
    /// time ends a process that spins.
    Late,
    /// The process ended, or answered nonsense.
    Broke,
}

/// No process is available: this machine's trouble, not the message's.
#[derive(Debug)]
pub struct NoParser(pub(super) std::io::Error);

impl From<NoParser> for StoreError {
    fn from(NoParser(error): NoParser) -> Self {
        Self::Failed(format!("no process to take messages apart: {error}"))
    }
}

/// Result of parsing a message.
#[derive(Debug)]
pub struct Found {
    /// The parser record, encoded as stored beside the message.
    pub record: Vec<u8>,
    /// References from which threads are built.
    pub references: Vec<u64>,
}

impl From<Parsed> for Found {
    fn from(parsed: Parsed) -> Self {
        Self {
            record: parsed.encode(),
            references: parsed.references,
        }
    }
}

/// Permission to have a message parsed on a thread: as many as there may be processes.
pub type Turn = OwnedSemaphorePermit;

/// The processes.
#[derive(Debug, Clone)]
pub struct Parsers(pub(super) Arc<Pool>);

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) launch: Launch,
    /// Silence after which a process is ended.
    pub(super) patience: Duration,
    /// Processes to be kept busy at once.
    busy: usize,
    turns: Arc<Semaphore>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Idle processes. The process that has waited longest is next, so that a silent process is noticed.
    idle: VecDeque<Process>,
    /// When the requests under way began.
    under_way: Vec<Instant>,
    /// When a process last finished a request.
    used: Option<Instant>,
}

impl Parsers {
    /// Processes that run this program.
    pub fn new(patience: Duration) -> Self {
        Self::launched_by(Launch::own(), patience)
    }

    pub(super) fn launched_by(launch: Launch, patience: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::of(launch, patience, processors.min(BUSY_MAX))
    }

    pub(super) fn of(launch: Launch, patience: Duration, busy: usize) -> Self {
        Self(Arc::new(Pool {
            launch,
            patience,
            busy,
            turns: Arc::new(Semaphore::new(PROCESSES_MAX)),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Starts a process if none waits, and returns the layers of its sandbox that hold.
    ///
    /// # Errors
    /// [`NoParser`].
    pub fn begin(&self) -> Result<Layers, NoParser> {
        let (process, began) = self.0.take()?;
        let layers = process.layers;
        self.0.back(began, Some(process));
        Ok(layers)
    }

    /// Waits for a turn, which allows the use of a thread that other tasks need as well.
    pub async fn turn(&self) -> Option<Turn> {
        // Never closed.
        Arc::clone(&self.0.turns).acquire_owned().await.ok()
    }

    /// Prepares a message for storing; blocks meanwhile.
    ///
    /// # Errors
    /// When the message has a wrong size, or no process is available.
    pub fn prepare(&self, message: &[u8]) -> Result<Prepared, StoreError> {
        let found = self.parse(message)?;
        Prepared::new(message, &found.record, &found.references)
    }

    /// Parses a message. A message that ends every process counts as opaque octets.
    ///
    /// # Errors
    /// [`NoParser`].
    pub fn parse(&self, message: &[u8]) -> Result<Found, NoParser> {
        let mut killed = 0;
        for scope in ATTEMPTS {
            let what = (message.len(), "a message");
            let ask = |process: &mut Process| process.ask(scope, message, self.0.patience);
            if let Attempt::Answered(parsed) = self.0.attempt(what, &mut killed, ask)? {
                return Ok(parsed.into());
            }
        }
        let octets = message.len();
        tracing::error!(
            octets,
            "message kept as it is: it ends whatever takes it apart"
        );
        Ok(Parsed::opaque(message).into())
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks a process about `octets` octets of `what`.
    ///
    /// # Errors
    /// [`NoParser`], also when processes were killed from outside; `killed` counts these over several attempts.
    pub(super) fn attempt<T>(
        &self,
        (octets, what): (usize, &'static str),
        killed: &mut u32,
        ask: impl Fn(&mut Process) -> Result<T, Trouble>,
    ) -> Result<Attempt<T>, NoParser> {
        loop {
            let (mut process, began) = self.take()?;
            let trouble = match ask(&mut process) {
                Ok(answer) => {
                    self.back(began, Some(process));
                    return Ok(Attempt::Answered(answer));
                }
                Err(trouble) => trouble,
            };
            let is_stopped = process.is_stopped();
            let ended = process.end();
            tracing::warn!(%trouble, %ended, is_stopped, octets, "{what} not taken apart");
            self.back(began, None);
            if is_stopped {
                // The idle processes have probably been stopped, too.
                self.rest();
            }
            if !ended.was_killed() && !is_stopped {
                return Ok(match trouble {
                    Trouble::Silent => Attempt::Late,
                    _ => Attempt::Broke,
                });
            }
            // Limits end a process in other ways: the system lacks memory, or an administrator killed the process.
            *killed += 1;
            if *killed == KILLS_MAX {
                let why = "all were killed, for want of memory perhaps";
                return Err(NoParser(std::io::Error::other(why)));
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }

    /// Ends idle processes.
    pub(super) fn rest(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        drop(idle);
    }

    /// Ends idle processes if no process finished a request for `patience`.
    pub(super) fn rest_unused(&self, patience: Duration) {
        let state = self.state();
        let unused = state.used.is_some_and(|used| used.elapsed() >= patience);
        drop(state);
        if unused {
            self.rest();
        }
    }

    /// Returns a process that waits for a message, and since when the process counts as busy.
    fn take(&self) -> Result<(Process, Instant), NoParser> {
        let mut state = self.state();
        loop {
            let began = Instant::now();
            while let Some(mut process) = state.idle.pop_front() {
                // No message is to blame for a process that ended while idle.
                if process.lives() {
                    state.under_way.push(began);
                    return Ok((process, began));
                }
            }
            let slow = |since: &&Instant| began.duration_since(**since) >= SLOW;
            let quick = state.under_way.len() - state.under_way.iter().filter(slow).count();
            if quick < self.busy && state.under_way.len() < PROCESSES_MAX {
                state.under_way.push(began);
                drop(state);
                return self.launch(began);
            }
            let waited = self.changed.wait_timeout(state, SLOW);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn launch(&self, began: Instant) -> Result<(Process, Instant), NoParser> {
        let mut failed = 0;
        loop {
            match self.launch.process() {
                Ok(process) => return Ok((process, began)),
                Err(error) => {
                    tracing::error!(%error, "no process to take messages apart");
                    failed += 1;
                    if failed == LAUNCHES {
                        self.back(began, None);
                        return Err(NoParser(error));
                    }
                    std::thread::sleep(LAUNCH_PAUSE);
                }
            }
        }
    }

    /// Takes a process back, or notes that the process is gone.
    fn back(&self, began: Instant, process: Option<Process>) {
        let mut state = self.state();
        if let Some(at) = state.under_way.iter().position(|since| *since == began) {
            state.under_way.swap_remove(at);
        }
        state.used = Some(Instant::now());
        // Extra processes, started beside slow processes, are not kept.
        if state.idle.len() < self.busy {
            state.idle.extend(process);
        }
        drop(state);
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
