//! The engine's thread, and the threads of its work. All events come by one channel.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use vere_ports::files::{Call, CallId, Caller, Errno, FileTime, Invalidate, Reply};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, RequestId, Urgency};
use vere_units::Timestamp;

use crate::lines::Level;

/// Threads for work without state.
const WORKERS: usize = 2;
/// The longest sleep without an event; some engines want no wake.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// The shortest sleep, so that a wake of the past costs no whole processor.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// The time of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// A clock without steps.
    pub(crate) steady: Timestamp,
    /// The wall clock.
    pub(crate) wall: FileTime,
}

/// A clock for engines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Now {
        let steady = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        // A wall clock before 1970 counts as 1970.
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            steady: Timestamp::from_millis(steady),
            wall: FileTime {
                seconds: i64::try_from(wall.as_secs()).unwrap_or(i64::MAX),
                nanoseconds: wall.subsec_nanos(),
            },
        }
    }
}

/// An engine, as the host sees engines.
pub(crate) trait Engine: Send + Sized + 'static {
    /// A call of the kernel.
    fn call(&mut self, now: Now, id: CallId, caller: Caller, call: Call);
    /// An account has answered.
    fn answered(&mut self, now: Now, id: RequestId, answer: Result<Answer, Fault>);
    /// Time has passed.
    fn wake(&mut self, now: Now);
    /// The next step.
    fn poll(&mut self) -> Option<Step<Self>>;
    /// When to wake the engine.
    fn next_wake(&self) -> Option<Timestamp>;
}

/// The effect of finished work on the engine.
pub(crate) type Effect<E> = Box<dyn FnOnce(&mut E, Now) + Send>;
/// Work for another thread.
pub(crate) type Work<E> = Box<dyn FnOnce() -> Effect<E> + Send>;

/// A wish of an engine.
pub(crate) enum Step<E> {
    Reply(CallId, Result<Reply, Errno>),
    Ask(RequestId, AccountId, Urgency, Request),
    /// For any worker.
    Work(Work<E>),
    /// For the thread of the disk, in order.
    Disk(Work<E>),
    Invalidate(Invalidate),
    Log(Level, String),
}

/// An event for an engine.
pub(crate) enum Event<E> {
    Call(CallId, Caller, Call),
    Answer(RequestId, Result<Answer, Fault>),
    Effect(Effect<E>),
    /// The engine comes back to the starter.
    Stop,
}

/// Kernel, accounts and log.
pub(crate) trait Outside: Send + 'static {
    fn reply(&mut self, id: CallId, result: Result<Reply, Errno>);
    fn ask(&mut self, id: RequestId, account: AccountId, urgency: Urgency, request: Request);
    fn invalidate(&mut self, what: Invalidate);
    fn log(&mut self, level: Level, line: &str);
}

/// A running engine.
pub(crate) struct Host<E> {
    events: Sender<Event<E>>,
    thread: JoinHandle<E>,
}

impl<E: Engine> Host<E> {
    /// Starts the threads. `events` has another sender wherever events come from.
    pub(crate) fn start(
        engine: E,
        clock: Clock,
        (events, happened): (Sender<Event<E>>, Receiver<Event<E>>),
        outside: impl Outside,
    ) -> io::Result<Self> {
        let lanes = Lanes {
            work: workers("fs-work", WORKERS, &events)?,
            disk: workers("fs-disk", 1, &events)?,
        };
        let mut owner = Owner {
            engine,
            clock,
            lanes,
            outside,
        };
        let run = move || {
            owner.run(&happened);
            owner.engine
        };
        let thread = thread::Builder::new().name("fs-engine".into()).spawn(run)?;
        Ok(Self { events, thread })
    }

    /// Does something with the engine, on its thread, and waits for the result; `None` when the engine is gone or too slow.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        longest: Duration,
        ask: impl FnOnce(&mut E, Now) -> T + Send + 'static,
    ) -> Option<T> {
        with(&self.events, longest, ask)
    }

    /// Ends the threads, and gives the engine back; `None` after a panic.
    pub(crate) fn stop(self) -> Option<E> {
        // An engine whose thread has ended takes no events.
        let _ended = self.events.send(Event::Stop);
        self.thread.join().ok()
    }
}

/// As [`Host::with`], for threads with a sender only.
pub(crate) fn with<E, T: Send + 'static>(
    events: &Sender<Event<E>>,
    longest: Duration,
    ask: impl FnOnce(&mut E, Now) -> T + Send + 'static,
) -> Option<T> {
    let (result, answer) = channel();
    let effect = move |engine: &mut E, now: Now| {
        // The asker may have given up.
        let _late = result.send(ask(engine, now));
    };
    events.send(Event::Effect(Box::new(effect))).ok()?;
    answer.recv_timeout(longest).ok()
}

struct Lanes<E> {
    work: Sender<Work<E>>,
    disk: Sender<Work<E>>,
}

/// Threads that share a channel of work. Each ends when the channel or the engine ends.
fn workers<E: 'static>(
    name: &str,
    count: usize,
    events: &Sender<Event<E>>,
) -> io::Result<Sender<Work<E>>> {
    let (send, receive) = channel::<Work<E>>();
    let receive = Arc::new(Mutex::new(receive));
    for _ in 0..count {
        let (receive, events) = (Arc::clone(&receive), events.clone());
        let run = move || {
            loop {
                let next = receive
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .recv();
                let Ok(work) = next else { return };
                if events.send(Event::Effect(work())).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name(name.into()).spawn(run)?;
    }
    Ok(send)
}

struct Owner<E, O> {
    engine: E,
    clock: Clock,
    lanes: Lanes<E>,
    outside: O,
}

impl<E: Engine, O: Outside> Owner<E, O> {
    fn run(&mut self, happened: &Receiver<Event<E>>) {
        loop {
            while let Some(step) = self.engine.poll() {
                self.carry_out(step);
            }
            match happened.recv_timeout(self.sleep()) {
                Ok(Event::Call(id, caller, call)) => {
                    self.engine.call(self.clock.now(), id, caller, call);
                }
                Ok(Event::Answer(id, answer)) => self.engine.answered(self.clock.now(), id, answer),
                Ok(Event::Effect(effect)) => effect(&mut self.engine, self.clock.now()),
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Events in a row must not hold up a wake.
            let now = self.clock.now();
            if self.engine.next_wake().is_some_and(|at| at <= now.steady) {
                self.engine.wake(now);
            }
        }
    }

    fn sleep(&self) -> Duration {
        let now = self.clock.now().steady;
        let until = |at: Timestamp| at.saturating_since(now);
        let wanted = self.engine.next_wake().map_or(SLEEP_MAX, until);
        wanted.clamp(SLEEP_MIN, SLEEP_MAX)
    }

    fn carry_out(&mut self, step: Step<E>) {
        // The threads of the lanes end after the engine's thread only.
        let taken = match step {
            Step::Work(work) => self.lanes.work.send(work).is_ok(),
            Step::Disk(work) => self.lanes.disk.send(work).is_ok(),
            Step::Reply(id, result) => {
                self.outside.reply(id, result);
                true
            }
            Step::Ask(id, account, urgency, request) => {
                self.outside.ask(id, account, urgency, request);
                true
            }
            Step::Invalidate(what) => {
                self.outside.invalidate(what);
                true
            }
            Step::Log(level, line) => {
                self.outside.log(level, &line);
                true
            }
        };
        if !taken {
            let line = "expected a thread that works; found none";
            self.outside.log(Level::Error, line);
        }
    }
}

#[cfg(test)]
mod tests;
