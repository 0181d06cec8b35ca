//! A worker that delivers the messages of one queue.

use std::rc::Rc;

use vere_queue::{Destination, Job};
use vere_spoolwire::QueueId;

use crate::group::Group;
use crate::host::Host;

/// A worker. Its queue counts the worker until the value is dropped.
#[derive(Debug)]
pub struct Worker<H: Host> {
    group: Rc<Group<H>>,
    pub(crate) queue: QueueId,
    /// The worker was started or woken for a message and has not fetched a message since.
    fresh: bool,
    /// The worker's connection counts as open.
    connected: bool,
}

impl<H: Host> Worker<H> {
    /// Returns a worker that [`Next::Open`](vere_queue::Next::Open) asks for.
    pub(crate) fn new(group: Rc<Group<H>>, queue: QueueId) -> Self {
        Self {
            group,
            queue,
            fresh: true,
            connected: false,
        }
    }

    /// The group of its queue.
    pub const fn group(&self) -> &Rc<Group<H>> {
        &self.group
    }

    /// The destination of its queue, while the queue exists.
    pub fn destination(&self) -> Option<Destination> {
        self.group.queues.destination(self.queue)
    }

    /// Notes that the connection takes messages.
    pub(crate) fn connected(&mut self) {
        self.connected = true;
        self.group
            .queues
            .change_quietly(|queues| queues.destination_reached(self.queue));
    }

    /// Reports the connection as closed.
    pub(crate) fn disconnected(&mut self) {
        if std::mem::take(&mut self.connected) {
            self.group
                .queues
                .change_quietly(|queues| queues.connection_closed(self.queue));
        }
    }

    /// Returns the worker's next ready message.
    pub(crate) fn take(&mut self) -> Option<Job> {
        let fresh = std::mem::take(&mut self.fresh);
        self.group.take(self.queue, fresh)
    }

    /// Notes that the worker was woken for a message.
    pub(crate) const fn woken(&mut self) {
        self.fresh = true;
    }
}

impl<H: Host> Drop for Worker<H> {
    fn drop(&mut self) {
        self.disconnected();
        self.group
            .queues
            .change(|queues| queues.worker_ended(self.queue, self.fresh));
    }
}
