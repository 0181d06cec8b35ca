//! A worker that delivers the messages of one queue.

use std::rc::Rc;

use vere_queue::Job;

use super::group::Group;

/// A worker on the account of its queue, until it is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    group: Rc<Group>,
    pub(super) queue: u32,
    /// The worker was started or woken for a message and has not fetched a message since.
    fresh: bool,
    /// The worker's connection counts as open.
    connected: bool,
}

impl Worker {
    pub(super) fn new(group: Rc<Group>, queue: u32) -> Self {
        Self {
            group,
            queue,
            fresh: true,
            connected: false,
        }
    }

    /// Its connection takes messages.
    pub(super) fn connected(&mut self) {
        self.connected = true;
        self.group
            .queues
            .change_quietly(|queues| queues.destination_reached(self.queue));
    }

    /// Reports the connection as closed.
    pub(super) fn disconnected(&mut self) {
        if std::mem::take(&mut self.connected) {
            self.group
                .queues
                .change_quietly(|queues| queues.connection_closed(self.queue));
        }
    }

    /// Returns the worker's next ready message.
    pub(super) fn take(&mut self) -> Option<Job> {
        let fresh = std::mem::take(&mut self.fresh);
        self.group.take(self.queue, fresh)
    }

    /// It was woken for a message.
    pub(super) const fn woken(&mut self) {
        self.fresh = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.disconnected();
        self.group
            .queues
            .change(|queues| queues.worker_ended(self.queue, self.fresh));
    }
}
