//! Messages are taken apart by processes of their own, bounded in time and memory, so that no message
//! takes the store down. `docs/internals/parsed.md` says what becomes of one that breaks them.
//!
//! A few processes wait for messages; each has one at a time, so that it is known which one broke it.
//! [`process`] is such a process as the store sees it, [`child`] what it does.

pub(crate) mod child;
mod decoders;
mod process;

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use vere_mime::Parsed;
use vere_mime::wire::Scope;
use vere_store::{Prepared, StoreError};

pub(crate) use decoders::{Decoders, Sought, are_enough};
use process::{Launch, Process, Trouble};

/// Processes that are kept busy, however many processors there are.
const BUSY_MAX: usize = 4;
/// Processes at most: those that have been silent for [`SLOW`] do not hold up messages that come after.
const PROCESSES_MAX: usize = 16;
/// A message that takes longer may be one that does not end: others get a process beside it.
const SLOW: Duration = Duration::from_millis(500);
/// How often a process is started until there is none, and the pause between.
const LAUNCHES: u32 = 5;
const LAUNCH_PAUSE: Duration = Duration::from_millis(20);
/// How many processes are killed before a message is put off, and the pause behind each.
const KILLS_MAX: u32 = 3;
const KILL_PAUSE: Duration = Duration::from_millis(100);
/// Processes that make the index, at once.
const INDEXING: usize = 1;
/// How a message is tried, one after the other: what ended a process once may have been something else.
const ATTEMPTS: [Scope; 3] = [Scope::Whole, Scope::Whole, Scope::Header];

/// What came of asking a process.
#[derive(Debug)]
enum Attempt<T> {
    /// Its answer.
    Answered(T),
    /// It did not answer in time. That may be the message's doing, or this machine had other things to do: what
    /// spins is ended by its limit of processor time.
    Late,
    /// It ended, or said nonsense.
    Broke,
}

/// No process could be had: this machine's trouble, not the message's.
#[derive(Debug)]
pub(crate) struct NoParser(std::io::Error);

impl From<NoParser> for StoreError {
    fn from(NoParser(error): NoParser) -> Self {
        Self::Failed(format!("no process to take messages apart: {error}"))
    }
}

/// What was found in a message.
#[derive(Debug)]
pub(super) struct Found {
    /// Encoded, as it is kept beside the message.
    pub(super) record: Vec<u8>,
    /// What threads are made of.
    pub(super) references: Vec<u64>,
}

impl From<Parsed> for Found {
    fn from(parsed: Parsed) -> Self {
        Self {
            record: parsed.encode(),
            references: parsed.references,
        }
    }
}

/// The processes of a store, by what they are for: whoever searches waits neither for mail that comes nor
/// for the index.
#[derive(Debug, Clone)]
pub(super) struct Processes {
    /// They take apart what is delivered.
    pub(super) delivering: Parsers,
    /// They look whether something is in messages.
    pub(super) searching: Decoders,
    /// They tell the texts of messages.
    pub(super) indexing: Decoders,
}

impl Processes {
    /// Those of this program.
    pub(super) fn new(patience: Duration) -> Self {
        let searching = Decoders::new(patience);
        Self {
            delivering: Parsers::new(patience),
            indexing: searching.beside(INDEXING),
            searching,
        }
    }
}

/// Leave to have a message taken apart on a thread: as many as there may be processes.
pub(super) type Turn = OwnedSemaphorePermit;

/// The processes.
#[derive(Debug, Clone)]
pub(super) struct Parsers(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    launch: Launch,
    /// Silence of a process that ends it.
    patience: Duration,
    /// Processes that are to be busy at once.
    busy: usize,
    turns: Arc<Semaphore>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Those without a message; who has waited longest is next, so that one that fell silent is noticed.
    idle: VecDeque<Process>,
    /// When those under way began.
    under_way: Vec<Instant>,
    /// When one had nothing more to do last.
    used: Option<Instant>,
}

impl Parsers {
    /// Processes of this program.
    pub(super) fn new(patience: Duration) -> Self {
        Self::launched_by(Launch::own(), patience)
    }

    fn launched_by(launch: Launch, patience: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::of(launch, patience, processors.min(BUSY_MAX))
    }

    fn of(launch: Launch, patience: Duration, busy: usize) -> Self {
        Self(Arc::new(Pool {
            launch,
            patience,
            busy,
            turns: Arc::new(Semaphore::new(PROCESSES_MAX)),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Waits for a turn. Whoever has one may use a thread that others wait for.
    pub(super) async fn turn(&self) -> Option<Turn> {
        // Never closed.
        Arc::clone(&self.0.turns).acquire_owned().await.ok()
    }

    /// Makes a message ready to be stored; takes its time.
    ///
    /// # Errors
    /// What is wrong with the message's size, or that no process can be had.
    pub(super) fn prepare(&self, message: &[u8]) -> Result<Prepared, StoreError> {
        let found = self.parse(message)?;
        Prepared::new(message, &found.record, &found.references)
    }

    /// Takes a message apart; one that ends every process counts as octets of which nothing is known.
    ///
    /// # Errors
    /// [`NoParser`].
    pub(super) fn parse(&self, message: &[u8]) -> Result<Found, NoParser> {
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

    /// Asks a process something about so many octets of something.
    ///
    /// # Errors
    /// [`NoParser`]: also when somebody else ended or stopped several, with those `killed` before.
    fn attempt<T>(
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
                // Whoever did that did it to others as well.
                self.rest();
            }
            if !ended.was_killed() && !is_stopped {
                return Ok(match trouble {
                    Trouble::Silent => Attempt::Late,
                    _ => Attempt::Broke,
                });
            }
            // Its limits end a process otherwise: the system has no memory, or somebody does this.
            *killed += 1;
            if *killed == KILLS_MAX {
                let why = "all were killed, for want of memory perhaps";
                return Err(NoParser(std::io::Error::other(why)));
            }
            std::thread::sleep(KILL_PAUSE);
        }
    }

    /// Ends those that have nothing to do.
    fn rest(&self) {
        let idle = std::mem::take(&mut self.state().idle);
        drop(idle);
    }

    /// Ends those that have nothing to do when none was asked for so long.
    fn rest_unused(&self, patience: Duration) {
        let state = self.state();
        let unused = state.used.is_some_and(|used| used.elapsed() >= patience);
        drop(state);
        if unused {
            self.rest();
        }
    }

    /// A process that waits for a message, and since when it counts as busy.
    fn take(&self) -> Result<(Process, Instant), NoParser> {
        let mut state = self.state();
        loop {
            let began = Instant::now();
            while let Some(mut process) = state.idle.pop_front() {
                // One that ended while it had nothing to do ended for no message.
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

    /// Takes a process back, or notes that it is gone.
    fn back(&self, began: Instant, process: Option<Process>) {
        let mut state = self.state();
        if let Some(at) = state.under_way.iter().position(|since| *since == began) {
            state.under_way.swap_remove(at);
        }
        state.used = Some(Instant::now());
        // Those that were needed beside slow ones are not kept.
        if state.idle.len() < self.busy {
            state.idle.extend(process);
        }
        drop(state);
        self.changed.notify_one();
    }
}

#[cfg(test)]
pub(crate) mod tests;
