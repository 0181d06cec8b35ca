//! Removal of unused queues: a gateway meets more destinations in a year than a spool has numbers for queues.

use std::time::Duration;

use vere_units::{QueueId, Timestamp};

use super::Queues;
use crate::destination::Destination;

/// A message on the way into a queue.
#[derive(Debug)]
#[must_use = "the queue stays until `arrived` is told"]
pub struct Expected {
    number: QueueId,
    /// The serial number of the queue among all queues with the same number.
    serial: u32,
}

impl Expected {
    /// The queue of the expected message.
    #[must_use]
    pub const fn number(&self) -> QueueId {
        self.number
    }
}

impl Queues {
    /// Announces a message on the way into a queue, which is kept until as many calls of
    /// [`arrived`](Self::arrived).
    pub fn expect(&mut self, number: QueueId) -> Expected {
        let serial = self.queues.get_mut(number).map_or(0, |queue| {
            queue.expected += 1;
            queue.serial
        });
        Expected { number, serial }
    }

    /// Records that an expected message was admitted, or will not come. A later queue with the same number is
    /// not affected.
    pub fn arrived(&mut self, expected: Expected) {
        let queue = self.queues.get_mut(expected.number);
        if let Some(queue) = queue.filter(|queue| queue.serial == expected.serial) {
            queue.expected = queue.expected.saturating_sub(1);
        }
    }

    /// Examines `count` numbers from the end of the last call on, and returns the queues without a message for
    /// `idle`.
    pub fn vacant(&mut self, count: u32, idle: Duration, now: Timestamp) -> Vec<QueueId> {
        let end = self.queues.end();
        let mut vacant = Vec::new();
        for _ in 0..count.min(end.0) {
            let number = QueueId(self.retire_at.0 % end.0);
            self.retire_at = number.next();
            if self.is_vacant(number, idle, now) {
                vacant.push(number);
            }
        }
        vacant
    }

    /// Removes a queue, if the queue is still vacant by the rules of [`vacant`](Self::vacant); the host then
    /// removes the queue from the spool. The knowledge of a site is dropped with the last queue of the site.
    pub fn retire(
        &mut self,
        number: QueueId,
        idle: Duration,
        now: Timestamp,
    ) -> Option<Destination> {
        if !self.is_vacant(number, idle, now) {
            return None;
        }
        self.remove_queue(number)
    }

    /// Forgets the queue of a destination that could not be made in the spool, and so never held anything.
    pub fn not_made(&mut self, number: QueueId, destination: &Destination) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        if queue.destination == *destination && queue.messages == 0 && queue.workers == 0 {
            queue.held_until = None;
            self.totals.paused -= usize::from(queue.paused_until.take().is_some());
            self.note_active(number);
            self.remove_queue(number);
        }
    }

    fn remove_queue(&mut self, number: QueueId) -> Option<Destination> {
        let queue = self.queues.get(number)?;
        let (place, site) = (queue.place, queue.site);
        for gate in [place, site].into_iter().flatten() {
            self.exchange(number, Some(gate), None);
        }
        let queue = self.queues.remove(number)?;
        self.numbers.remove(&queue.destination);
        Some(queue.destination)
    }

    /// Whether removal loses nothing: the queue has no message, no attempt, no pause, and neither place nor site
    /// has a state to remember.
    fn is_vacant(&self, number: QueueId, idle: Duration, now: Timestamp) -> bool {
        self.queues.get(number).is_some_and(|queue| {
            let waits = queue.in_ring || queue.in_line != [false; 2] || queue.called;
            !queue.is_active()
                && queue.expected == 0
                && queue.workers == 0
                && !waits
                && now.saturating_since(queue.used_at) >= idle
                && self
                    .gates
                    .of(queue)
                    .all(|gate| gate.members > 1 || gate.is_as_new(now))
        })
    }
}
