//! The stage of worlds with queues: virtual time, tasks that a seed puts in order, and the lives of processes that each have a group of
//! queues ([`vere_delivery::Group`]) above a spool.
//!
//! The spool here is a model: acknowledged records stay, changes take effect in order and whole. The first world of this crate checks
//! that nodes and owners keep the promise. A world implements [`Staged`] with the events around the groups.

mod executor;
mod host;
mod lives;
mod pipe;
mod spool;
mod time;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::{Deref, Range};
use std::rc::Rc;

use bytes::Bytes;
use vere_delivery::{DirectoryAway, Happened, Notice};
use vere_queue::{Envelope, Report};
use vere_spoolwire::Batch;
use vere_units::TraceId;

use crate::random::Random;
use crate::schedule::Micros;
use crate::trace::Trace;
pub(crate) use executor::{Executor, Task};
pub(crate) use host::SimHost;
pub(crate) use lives::Life;
pub(crate) use pipe::{Answer, Request, Submitted, answer};
pub(crate) use spool::Spool;
pub(crate) use time::{Due, Sleep, turn};

/// The wall clock's reading when a run begins, in ms.
pub(crate) const BASE: u64 = 1_700_000_000_000;

/// Events by time, and by number where the times are equal.
type Events<W> = BTreeMap<(Micros, u64), Due<<W as Staged>::Event>>;

/// The state that all worlds with queues have.
pub(crate) struct Stage<W: Staged> {
    pub(crate) now: Cell<Micros>,
    pub(crate) random: RefCell<Random>,
    /// No more faults.
    pub(crate) calm: Cell<bool>,
    pub(crate) lives: RefCell<Vec<Life<W>>>,
    /// The run has ended.
    pub(crate) over: Cell<bool>,
    pub(crate) give_up_at: Cell<Micros>,
    events: RefCell<Events<W>>,
    serial: Cell<u64>,
    next_trace: Cell<u64>,
    spawned: RefCell<Vec<(usize, Task)>>,
    wrong: RefCell<Option<String>>,
    trace: RefCell<Trace>,
}

/// A world with queues. All worlds run the same spool, and the same surroundings of a group.
pub(crate) trait Staged: Deref<Target = Stage<Self>> + Sized + 'static {
    /// An event of a single world.
    type Event;

    /// An event of this world happens.
    fn happens(self: &Rc<Self>, event: Self::Event);

    /// A task has taken a step. Its process may die now.
    fn stepped(self: &Rc<Self>, life: usize, executor: &mut Executor, choice: &mut Random);

    /// Whether a life has the delivery lease.
    fn has_lease(&self, life: usize) -> bool;

    /// Octets of a block that the spool gives, at most.
    fn block_octets(&self) -> u32;

    /// The batch that reaches the spool in place of a submitted batch.
    fn alters(&self, batch: Batch) -> Batch {
        batch
    }

    /// Whether the spool acknowledges a change before the change is done.
    fn acknowledges_early(&self) -> bool {
        false
    }

    /// The spool of a life does a request, and answers.
    fn does(&self, life: usize, request: &Request);

    /// Whether a report may be sent.
    fn may_report(&self, _report: &Report, _about: TraceId) -> bool {
        true
    }

    /// A life writes a report.
    fn write(
        self: &Rc<Self>,
        life: usize,
        about: &Envelope,
        original: &Bytes,
        report: &Report,
    ) -> impl Future<Output = Result<Notice, DirectoryAway>>;

    /// A life tells of an event.
    fn hears(&self, life: usize, happened: &Happened<'_>);

    /// Waits for a time that the seed chooses.
    fn pause(self: &Rc<Self>, range: Range<Micros>) -> Sleep<Self> {
        let until = self.now.get() + self.span(range).max(1);
        Sleep::new(self, until)
    }
}

impl<W: Staged> Stage<W> {
    pub(crate) fn new(random: Random, traced: bool) -> Self {
        Self {
            now: Cell::new(0),
            random: RefCell::new(random),
            calm: Cell::new(false),
            lives: RefCell::default(),
            over: Cell::new(false),
            give_up_at: Cell::new(u64::MAX),
            events: RefCell::default(),
            serial: Cell::new(0),
            next_trace: Cell::new(1),
            spawned: RefCell::default(),
            wrong: RefCell::default(),
            trace: RefCell::new(Trace::new(traced)),
        }
    }

    pub(crate) fn span(&self, range: Range<Micros>) -> Micros {
        self.random.borrow_mut().range(range)
    }

    pub(crate) fn draw(&self, percent: u64) -> bool {
        self.random.borrow_mut().percent(percent)
    }

    /// As [`Self::draw`], for a fault: none happens after the last fault.
    pub(crate) fn draw_fault(&self, percent: u64) -> bool {
        !self.calm.get() && self.draw(percent)
    }

    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> T {
        let index = self.random.borrow_mut().below(of.len());
        of[index]
    }

    pub(crate) fn next_id(&self) -> TraceId {
        let next = self.next_trace.get();
        self.next_trace.set(next + 1);
        TraceId::new(next)
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        self.trace.borrow_mut().note(self.now.get(), 0, what);
    }

    /// Something is wrong. The first thing counts.
    pub(crate) fn fail(&self, wrong: String) {
        self.note(|| wrong.clone());
        self.wrong.borrow_mut().get_or_insert(wrong);
    }

    pub(crate) fn hold(&self, promise: Result<(), String>) {
        if let Err(wrong) = promise {
            self.fail(wrong);
        }
    }

    /// Whether something is wrong.
    pub(crate) fn is_wrong(&self) -> bool {
        self.wrong.borrow().is_some()
    }

    /// Ends a run: the broken promise, and the last events. Lives and events hold the world, and the world holds both.
    pub(crate) fn end(&self) -> (Option<String>, Vec<String>) {
        drop(self.spawned.take());
        drop(self.lives.take());
        drop(self.events.take());
        (self.wrong.take(), self.trace.borrow().lines())
    }
}
