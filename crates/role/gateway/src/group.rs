//! State that exists once per group of queues: the group of this gateway, or of a dead gateway that this process
//! delivers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, Notify, Semaphore};
use vere_queue::Queues;
use vere_settings::Settings;
use vere_spoolwire::QueueId;
use vere_units::Timestamp;

use super::desk::QueueDesk;
use super::event_lines::EventLines;
use super::policy::policy;
use super::process::Process;
use super::waiting::Behind;
use vere_link::link::SpoolLink;
use vere_process::clock;

/// How long deliveries and sessions may go on after the stop was asked for.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Ends with reports that are being stored at once: each has a message, and the report, in memory.
const STORING_MAX: usize = 64;

/// A group of queues that is delivered. All tasks run on one thread, so no locks are needed.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) process: Rc<Process>,
    pub(super) link: SpoolLink,
    pub(super) queues: QueueDesk,
    clock: clock::Watch,
    wakers: RefCell<HashMap<u32, Rc<Notify>>>,
    /// Queues to be looked through behind their heads.
    pub(super) behind: Behind,
    /// Ends with reports that are being stored.
    pub(super) storing: Semaphore,
    /// Room for queues is made for one at a time.
    pub(super) making: Mutex<()>,
    /// Until this time the gateway does not search for empty queues to end: the last search ended none.
    pub(super) full_until: Cell<Option<Instant>>,
    /// Serialises changes of queue commands.
    pub(super) ordering: Arc<Mutex<()>>,
    /// The queue that stores the commands, once known.
    pub(super) orders_queue: Cell<Option<QueueId>>,
    /// Lines about messages for other systems.
    pub(super) event_lines: EventLines,
    recovered: Cell<bool>,
    unreadable: Cell<u64>,
    stopping: Cell<bool>,
}

/// Returns empty queues. The spool may hold mail of queues from before a step of the wall clock.
fn begin_queues(settings: &Settings) -> Queues {
    let mut queues = Queues::new(policy(settings));
    queues.spare_until(clock::now());
    queues
}

impl Group {
    /// Returns a group behind a link, with empty queues.
    pub(super) fn new(process: &Rc<Process>, link: SpoolLink) -> Self {
        Self {
            process: Rc::clone(process),
            link,
            queues: QueueDesk::new(begin_queues(&process.settings())),
            clock: clock::Watch::default(),
            wakers: RefCell::default(),
            behind: Behind::default(),
            storing: Semaphore::new(STORING_MAX),
            making: Mutex::new(()),
            full_until: Cell::new(None),
            ordering: Arc::default(),
            orders_queue: Cell::new(None),
            event_lines: EventLines::new(process.event_target.is_some()),
            recovered: Cell::new(false),
            unreadable: Cell::new(0),
            stopping: Cell::new(false),
        }
    }

    /// Applies the delivery rules of other settings.
    pub(super) fn set_policy(&self, settings: &Settings) {
        self.queues
            .change(|queues| queues.set_policy(policy(settings)));
    }

    /// The time now, by which the queues go: where the wall clock was put ahead or back, they have followed it.
    pub(super) fn queue_time(&self) -> Timestamp {
        let (now, step) = self.clock.look();
        if let Some(step) = step {
            self.process.metrics.clock_stepped();
            tracing::warn!(
                seconds = step.seconds(),
                "wall clock was put ahead or back: retries wait as long as before, and nothing expires for one full retry"
            );
            self.queues.change(|queues| queues.clock_stepped(step, now));
        }
        now
    }

    /// Whether what the spool holds was taken back: then the queues are known.
    pub(super) fn is_recovered(&self) -> bool {
        self.recovered.get()
    }

    /// What the spool holds was taken back.
    pub(super) fn recovered(&self) {
        self.recovered.set(true);
        self.queues.wake();
    }

    /// A record was found that this version cannot read; it stays where it is.
    pub(super) fn left_alone(&self) {
        self.unreadable.set(self.unreadable.get() + 1);
    }

    /// Records that were found and cannot be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable.get()
    }

    /// Whether attempts may begin now: after recovery, until the stop, and under the delivery lease.
    pub(super) fn delivering(&self) -> bool {
        self.recovered.get() && !self.stopping.get() && self.link.may_deliver()
    }

    /// Delivers no more, whatever comes: the gateway is about to end.
    pub(super) fn stop_delivering(&self) {
        self.stopping.set(true);
    }

    /// What wakes an idle worker of a queue.
    pub(super) fn waker(&self, queue: u32) -> Rc<Notify> {
        Rc::clone(self.wakers.borrow_mut().entry(queue).or_default())
    }

    /// Forgets what wakes the workers of a queue that has ended.
    pub(super) fn forget_waker(&self, queue: u32) {
        self.wakers.borrow_mut().remove(&queue);
    }

    /// Messages being delivered.
    pub(super) fn in_flight(&self) -> usize {
        self.queues.look(|queues| queues.totals().in_flight)
    }
}
