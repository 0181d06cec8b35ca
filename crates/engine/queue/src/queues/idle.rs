//! Connections kept for the next message of their queue, which give way to queues waiting for a connection.
//!
//! While connections are free an idle connection costs nothing. When all connections are in use, or as many as
//! a site accepts, an idle connection ends for each waiting queue, longest idle first; so a gateway with a
//! message each for many destinations does not wait for the idle time of served destinations.

use std::collections::BTreeSet;

use vere_units::QueueId;

use super::Queues;
use super::gates::GateId;
use super::queue::Queue;

/// Queues with idle workers, longest idle first.
pub(super) type Idlers = BTreeSet<(u64, QueueId)>;

impl Queues {
    /// Records that a worker waits for work, until [`Next::Wake`](super::Next::Wake) or
    /// [`Next::Release`](super::Next::Release). False: other queues wait for the connection, and the worker
    /// has to end.
    #[must_use]
    pub fn worker_idle(&mut self, number: QueueId) -> bool {
        let Some(queue) = self.queues.get(number) else {
            return true;
        };
        if queue.ready == 0 && self.is_coveted(queue) {
            self.leaves(number);
            return false;
        }
        self.rests(number);
        self.make_runnable(number);
        true
    }

    /// Records that an idle worker continues by itself (to end).
    pub fn worker_resumed(&mut self, number: QueueId) {
        self.stirs(number);
    }

    /// Whether a woken worker has to end because of [`Next::Release`](super::Next::Release); every woken
    /// worker must ask.
    #[must_use]
    pub fn worker_released(&mut self, number: QueueId) -> bool {
        let Some(queue) = self.queues.get_mut(number) else {
            return false;
        };
        let released = queue.released > 0;
        queue.released -= usize::from(released);
        released
    }

    /// Records another idle worker of a queue.
    fn rests(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.idle += 1;
        if queue.idle == 1 {
            self.idled += 1;
            queue.idle_since = self.idled;
            let key = (queue.idle_since, number);
            self.idlers.insert(key);
            for id in queue.gates() {
                self.gates.with(id, |gate| gate.idlers.insert(key));
            }
        }
    }

    /// Records that an idle worker of a queue is idle no more.
    pub(super) fn stirs(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.idle = queue.idle.saturating_sub(1);
        if queue.idle == 0 {
            let key = (queue.idle_since, number);
            self.idlers.remove(&key);
            for id in queue.gates() {
                self.gates.with(id, |gate| gate.idlers.remove(&key));
            }
        }
    }

    /// Records that a worker of a queue has to end for other queues.
    fn leaves(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        queue.leaving += 1;
        self.leaving += 1;
        for id in queue.gates() {
            self.gates.with(id, |gate| gate.leaving += 1);
        }
    }

    /// Records that a worker of a queue has ended, maybe for other queues.
    pub(super) fn has_left(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if queue.leaving > 0 {
            queue.leaving -= 1;
            self.leaving -= 1;
            for id in queue.gates() {
                self.gates.with(id, |gate| gate.leaving -= 1);
            }
        }
    }

    /// Whether queues wait for a connection of this queue, beyond the connections about to end.
    fn is_coveted(&self, queue: &Queue) -> bool {
        let crowded = |id| {
            self.gates
                .get(id)
                .is_some_and(|gate| gate.is_coveted(&self.policy))
        };
        self.lacks_connections() || queue.gates().any(crowded)
    }

    /// Whether more queues wait for a connection than are free or end for that.
    fn lacks_connections(&self) -> bool {
        let waiting = self.starved.len()
            + match self.may_probe() {
                true => self.starved.probing(),
                false => 0,
            };
        let max = self.policy.connections_max;
        waiting > max.saturating_sub(self.totals.connections) + self.leaving
    }

    /// A queue waits for a connection when all are in use: an idle one ends.
    pub(super) fn release_any(&mut self) {
        if self.lacks_connections() {
            self.release(self.idlers.first().copied());
        }
    }

    /// A queue waits for a connection to a site: an idle connection to the site ends.
    pub(super) fn release_at(&mut self, id: GateId) {
        let coveted = self
            .gates
            .get(id)
            .filter(|gate| gate.is_coveted(&self.policy));
        self.release(coveted.and_then(|gate| gate.idlers.first().copied()));
    }

    fn release(&mut self, idler: Option<(u64, QueueId)>) {
        let Some((_, number)) = idler else { return };
        self.stirs(number);
        self.leaves(number);
        if let Some(queue) = self.queues.get_mut(number) {
            queue.released += 1;
            self.releases.push_back(number);
        }
    }
}
