//! Queues whose messages behind the head wait to be looked through.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;

use vere_queue::QueueNumber;

/// The reason why messages wait: the reply of a host or destination.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) remote: String,
    pub(crate) reply: String,
}

/// Queues that are to be looked through, and why their messages wait.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    waiting: RefCell<BTreeMap<QueueNumber, Reason>>,
    running: Cell<bool>,
}

impl Behind {
    /// Adds a queue. Returns whether a task has to be started for it: none is running.
    pub(crate) fn add(&self, queue: QueueNumber, reason: Reason) -> bool {
        self.waiting.borrow_mut().insert(queue, reason);
        !self.running.replace(true)
    }

    /// The task has ended: no queue waits.
    pub(crate) fn ended(&self) {
        self.running.set(false);
    }

    /// Takes the queue after another one; after the last comes the first.
    pub(crate) fn next(&self, after: QueueNumber) -> Option<(QueueNumber, Reason)> {
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

    /// Puts a queue back, unless there is a newer reason.
    pub(crate) fn go_on(&self, queue: QueueNumber, reason: Reason) {
        self.waiting.borrow_mut().entry(queue).or_insert(reason);
    }
}
