//! Queues whose messages wait for an inspection: behind the head, or because their own end has come.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use vere_spoolwire::QueueId;

/// The reason for the wait of messages: the reply of a host or destination.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) remote: String,
    pub(crate) reply: String,
}

/// Queues that wait for an inspection, with the reasons.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    waiting: RefCell<BTreeMap<QueueId, Reason>>,
    running: Cell<bool>,
}

impl Backlog {
    /// Adds a queue. Returns whether the caller has to start a task, because no task runs.
    pub(crate) fn add(&self, queue: QueueId, reason: Reason) -> bool {
        self.waiting.borrow_mut().insert(queue, reason);
        !self.running.replace(true)
    }

    /// Notes the end of the task: no queue waits.
    pub(crate) fn ended(&self) {
        self.running.set(false);
    }

    /// Takes the next queue after queue `after`; the first queue follows the last.
    pub(crate) fn next(&self, after: QueueId) -> Option<(QueueId, Reason)> {
        let mut waiting = self.waiting.borrow_mut();
        let later = (Bound::Excluded(after), Bound::Unbounded);
        let first = || waiting.keys().next();
        let queue = *waiting
            .range(later)
            .next()
            .map(|(queue, _)| queue)
            .or_else(first)?;
        waiting.remove_entry(&queue)
    }

    /// Puts a queue back, unless the queue has a newer reason.
    pub(crate) fn go_on(&self, queue: QueueId, reason: Reason) {
        self.waiting.borrow_mut().entry(queue).or_insert(reason);
    }
}

/// The task that ends messages whose own end has come, and the looks for such messages.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    running: Cell<bool>,
    /// The time of the next look, by the clock that never steps.
    look_at: Cell<Duration>,
}

impl Overdue {
    /// Whether it is time for a look, which the task does not need. The next look follows after `pause`.
    pub(crate) fn is_due(&self, now: Duration, pause: Duration) -> bool {
        let due = !self.running.get() && now >= self.look_at.get();
        if due {
            self.look_at.set(now + pause);
        }
        due
    }

    /// Notes the beginning of the task.
    pub(crate) fn began(&self) {
        self.running.set(true);
    }

    /// Notes the end of the task.
    pub(crate) fn ended(&self) {
        self.running.set(false);
    }
}
