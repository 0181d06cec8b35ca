//! The state of a group of queues that is delivered.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use futures_util::lock::Mutex;
use vere_queue::{Policy, Queues};
use vere_spoolwire::QueueId;
use vere_units::Timestamp;

use crate::backlog::{Backlog, Overdue};
use crate::bell::Bell;
use crate::desk::QueueDesk;
use crate::host::{Happened, Host};
use crate::lines::EventLines;

/// A group of queues under delivery: the queues of this gateway, or of a dead gateway. All tasks of a group run on one
/// thread, so no locks are needed.
#[derive(Debug)]
pub struct Group<H> {
    /// The surroundings.
    pub host: H,
    /// The queues.
    pub queues: QueueDesk,
    /// Lines for other systems.
    pub event_lines: EventLines,
    /// What calls idle workers.
    bells: RefCell<HashMap<QueueId, Rc<Bell>>>,
    /// Queues to be looked through behind their heads.
    pub(crate) backlog: Backlog,
    /// The task that ends messages whose own end has come.
    pub(crate) overdue: Overdue,
    /// Room for queues is made for one at a time.
    pub(crate) making: Mutex<()>,
    /// The queue that stores orders of operators, once known.
    pub(crate) orders_queue: Cell<Option<QueueId>>,
    /// Until this time no message searches for empty queues to end: the last search ended none.
    pub(crate) full_until: Cell<Option<Duration>>,
    recovered: Cell<bool>,
    unreadable: Cell<u64>,
    stopping: Cell<bool>,
}

impl<H: Host> Group<H> {
    /// Returns a group with empty queues. `lines`: whether lines for other systems are kept.
    #[must_use]
    pub fn new(host: H, policy: Policy, lines: bool) -> Self {
        let mut queues = Queues::new(policy);
        // The spool may hold mail of queues from before a step of the wall clock.
        queues.spare_until(host.now());
        Self {
            host,
            queues: QueueDesk::new(queues),
            event_lines: EventLines::new(lines),
            bells: RefCell::default(),
            backlog: Backlog::default(),
            overdue: Overdue::default(),
            making: Mutex::new(()),
            orders_queue: Cell::new(None),
            full_until: Cell::new(None),
            recovered: Cell::new(false),
            unreadable: Cell::new(0),
            stopping: Cell::new(false),
        }
    }

    /// The time now, by which the queues go: where the wall clock was put ahead or back, the queues have followed.
    pub fn queue_time(&self) -> Timestamp {
        let (now, step) = self.host.look_at_clock();
        if let Some(step) = step {
            self.host.tell(&Happened::ClockStepped(step));
            tracing::warn!(
                seconds = step.seconds(),
                "wall clock was put ahead or back: retries wait as long as before, and nothing expires for one full retry"
            );
            self.queues.change(|queues| queues.clock_stepped(step, now));
        }
        now
    }

    /// Whether the records in the spool were read, so that the queues are known.
    pub fn is_recovered(&self) -> bool {
        self.recovered.get()
    }

    /// Notes that the records in the spool were read.
    pub fn recovered(&self) {
        self.recovered.set(true);
        self.queues.wake();
    }

    /// Notes a record that this version cannot read; the record stays in the spool.
    pub(crate) fn left_alone(&self) {
        self.unreadable.set(self.unreadable.get() + 1);
    }

    /// Number of records that this version cannot read.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.get()
    }

    /// Whether attempts may begin now: after recovery, until the stop, and under the delivery lease.
    pub fn delivering(&self) -> bool {
        self.recovered.get() && !self.stopping.get() && self.host.may_deliver()
    }

    /// Begins no more attempts: the gateway is about to end.
    pub fn stop_delivering(&self) {
        self.stopping.set(true);
    }

    /// Number of messages in delivery.
    pub fn in_flight(&self) -> usize {
        self.queues.look(|queues| queues.totals().in_flight)
    }

    /// The bell of a queue's idle workers.
    pub(crate) fn bell(&self, queue: QueueId) -> Rc<Bell> {
        Rc::clone(self.bells.borrow_mut().entry(queue).or_default())
    }

    /// Calls an idle worker of a queue.
    pub fn call_worker(&self, queue: QueueId) {
        self.bell(queue).ring();
    }

    /// Forgets the bell of a queue that has ended.
    pub(crate) fn forget_bell(&self, queue: QueueId) {
        self.bells.borrow_mut().remove(&queue);
    }
}
