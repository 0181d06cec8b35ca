//! Memory that messages take while they are received, of all connections of a role together.
//!
//! Who holds what stands in a `Ledger`. A message beyond the bound does not pay for idle clients with memory: the
//! connection with the most memory for its rate is called, wherever the connection waits, and drops its message.

mod call;
mod ledger;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::rc::Rc;
use std::time::{Duration, Instant};

use vere_telemetry::metrics::{Counter, Gauge};

use self::call::Call;
use self::ledger::{Called, Ledger, Payer};
use super::places::Client;

pub use self::call::Verdict;
pub use self::ledger::Heaviest;

/// A shortage is said once in so long, however many messages it costs.
const SAY_EVERY: Duration = Duration::from_secs(10);
/// So long after somebody had to let go of memory it is shown who holds most.
const SHORT: Duration = Duration::from_secs(60);

/// A protocol machine that holds what a client sends until a message is whole.
pub trait Receiver {
    /// Octets that it holds of messages.
    fn memory(&self) -> usize;

    /// Whether the client has proved to be an account.
    fn is_authenticated(&self) -> bool;

    /// Lets go of the message that is being received; the client hears that there is no room for it now.
    fn refuse_for_room(&mut self);

    /// Ends the session of a client that is too slow.
    fn end(&mut self);
}

/// What is shown of the memory.
#[derive(Debug, Default)]
pub struct MemoryFigures {
    /// Octets held.
    pub held: Gauge,
    /// Messages refused for want of memory.
    pub refused: Counter,
    /// Connections ended for want of memory.
    pub ended: Counter,
}

/// What is shared out, for the log.
pub const MEMORY: &str = "memory";
/// See [`MEMORY`].
pub const DISK: &str = "the disk";

/// The bounds of all, and who holds what.
#[derive(Debug)]
pub struct BodyMemory {
    what: &'static str,
    ledger: RefCell<Ledger>,
    /// Bound of the settings in octets.
    max: Cell<usize>,
    /// Bound of the resource itself in octets; only a disk has one.
    room: Cell<usize>,
    figures: MemoryFigures,
    /// When somebody was called last.
    short: Cell<Option<Instant>>,
    /// The time of the last log line about shortage, and the clients that no line has counted yet.
    said: Cell<Option<Instant>>,
    unsaid: Cell<Called>,
}

impl BodyMemory {
    /// Nothing is held, and nothing may be.
    pub fn new(what: &'static str, figures: MemoryFigures) -> Self {
        Self {
            what,
            ledger: RefCell::new(Ledger::new(Instant::now())),
            max: Cell::new(0),
            room: Cell::new(usize::MAX),
            figures,
            short: Cell::default(),
            said: Cell::default(),
            unsaid: Cell::default(),
        }
    }

    /// Sets the bound: `limits.body_memory_max`, or `limits.body_disk_max`. One client gets a quarter, and an eighth is for those who have
    /// authenticated.
    pub fn set_max(&self, max: usize) {
        self.max.set(max);
        let bound = max.min(self.room.get());
        self.ledger.borrow_mut().set_max(bound);
    }

    /// Bounds the ledger by the free space of the resource: `more` octets may be added to the octets held now. A negative
    /// number means that connections have to free octets; the heaviest holder for its rate is called first.
    fn set_room(&self, more: i64) {
        let held = i64::try_from(self.held()).unwrap_or(i64::MAX);
        let room = usize::try_from(held.saturating_add(more)).unwrap_or(0);
        self.room.set(room);
        self.set_max(self.max.get());
    }

    /// The part of a connection that begins. `None` hands over for many, such as LMTP: no bound of one client applies,
    /// and it counts as authenticated, as users of this machine do.
    pub fn share(self: &Rc<Self>, client: Option<Client>) -> Share {
        Share {
            memory: Rc::clone(self),
            client,
            holding: None,
        }
    }

    /// Whether clients without authentication hold too much memory to begin anything more: from `from` percent of the share
    /// of these clients on, until the memory is below `until` percent. `before` is the last result. Clients that hold memory
    /// and do not move are called first.
    pub fn is_short(&self, from: u32, until: u32, before: bool) -> bool {
        let mark = if before { until } else { from };
        let mut ledger = self.ledger.borrow_mut();
        if !ledger.is_at(mark) {
            return false;
        }
        let called = ledger.relieve(until, Instant::now());
        let short = ledger.is_at(mark);
        drop(ledger);
        self.note(called);
        short
    }

    /// Octets held.
    pub fn held(&self) -> usize {
        self.ledger.borrow().here()
    }

    /// The client that holds most, of all its connections together.
    pub fn heaviest(&self) -> Option<Heaviest> {
        self.ledger.borrow().heaviest()
    }

    /// Whether memory was so short lately that somebody had to let go of it.
    pub fn was_short(&self) -> bool {
        self.short.get().is_some_and(|then| then.elapsed() < SHORT)
    }

    fn note(&self, called: Called) {
        if !called.any() {
            return;
        }
        let now = Instant::now();
        self.short.set(Some(now));
        self.figures.refused.inc_by(called.refused);
        self.figures.ended.inc_by(called.ended);
        let unsaid = self.unsaid.get().and(called);
        self.unsaid.set(unsaid);
        let is_early = |said: Instant| now.saturating_duration_since(said) < SAY_EVERY;
        if self.said.get().is_some_and(is_early) {
            return;
        }
        self.said.set(Some(now));
        self.unsaid.take();
        let Some(worst) = unsaid.worst else {
            return;
        };
        tracing::warn!(
            client = %worst.client,
            octets = worst.octets,
            messages = worst.messages,
            refused = unsaid.refused,
            ended = unsaid.ended,
            "{} for arriving messages short: messages refused that hold most for their rate",
            self.what
        );
    }
}

/// What one connection holds.
#[derive(Debug)]
pub struct Share {
    memory: Rc<BodyMemory>,
    client: Option<Client>,
    holding: Option<Holding>,
}

/// An entry of the ledger.
#[derive(Debug)]
struct Holding {
    id: u64,
    octets: usize,
    /// Whether the ledger has to hear of it though it holds as much as before.
    stale: bool,
    call: Rc<Call>,
}

impl Share {
    /// Counts what `receiver` holds now, and does what this connection was called to do. To be asked whenever octets
    /// have come, and when [`Share::called`] returns; not while a whole message is being stored. Whether it was called
    /// to do anything: then the receiver has to be asked anew what is next.
    pub fn count(&mut self, receiver: &mut impl Receiver) -> bool {
        let before = self.obey(receiver);
        self.set(receiver.memory(), receiver.is_authenticated(), false);
        let now = self.obey(receiver);
        if now {
            self.set(receiver.memory(), receiver.is_authenticated(), false);
        }
        before || now
    }

    /// Counts a whole message of so many octets, until the next [`Share::count`]: whether there is room for it while it
    /// is made safe.
    pub fn keep(&mut self, octets: usize, authenticated: bool) -> bool {
        // A call that came meanwhile is for clients whose messages are not whole.
        self.take_verdict();
        self.set(octets, authenticated, true);
        self.take_verdict().is_none()
    }

    /// Counts what was counted last as a whole message, until the next [`Share::count`].
    pub fn keep_counted(&mut self) {
        if let Some(holding) = &self.holding {
            self.keep(holding.octets, true);
        }
    }

    /// Records how many octets all connections together may add to the octets held now. The number is negative where the
    /// resource has less free space than its reserve.
    pub fn set_room(&self, more: i64) {
        self.memory.set_room(more);
    }

    /// Returns when this connection was called to let go of what it holds: [`Share::count`] does it.
    pub async fn called(&self) {
        let Some(holding) = &self.holding else {
            return pending().await;
        };
        while holding.call.verdict.get().is_none() {
            holding.call.notify.notified().await;
        }
    }

    fn obey(&mut self, receiver: &mut impl Receiver) -> bool {
        let verdict = self.take_verdict();
        match verdict {
            Some(Verdict::Refuse) => receiver.refuse_for_room(),
            Some(Verdict::End) => receiver.end(),
            None => {}
        }
        verdict.is_some()
    }

    fn take_verdict(&mut self) -> Option<Verdict> {
        let holding = self.holding.as_mut()?;
        let verdict = holding.call.verdict.take();
        holding.stale |= verdict.is_some();
        verdict
    }

    fn set(&mut self, octets: usize, authenticated: bool, whole: bool) {
        let known = self.holding.as_ref();
        let same = known.map_or(octets == 0, |known| known.octets == octets && !known.stale);
        if same && !whole {
            return;
        }
        let mut ledger = self.memory.ledger.borrow_mut();
        let called = match (&mut self.holding, octets) {
            (None, 0) => return,
            (Some(holding), 0) => {
                ledger.remove(holding.id);
                self.holding = None;
                Called::default()
            }
            (Some(holding), octets) => {
                holding.octets = octets;
                holding.stale = whole;
                ledger.set(holding.id, octets, whole, Instant::now())
            }
            (None, octets) => {
                let local = matches!(self.client, None | Some(Client::User(_)));
                let call = Rc::<Call>::default();
                let owner = Payer {
                    client: self.client,
                    guest: !local && !authenticated,
                };
                let (id, called) =
                    ledger.add((owner, Rc::clone(&call)), octets, whole, Instant::now());
                self.holding = Some(Holding {
                    id,
                    octets,
                    stale: whole,
                    call,
                });
                called
            }
        };
        let held = i64::try_from(ledger.here()).unwrap_or(i64::MAX);
        drop(ledger);
        self.memory.figures.held.set(held);
        self.memory.note(called);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0, false, false);
    }
}
