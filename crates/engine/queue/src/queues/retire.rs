//! Queues that nobody needs any more: a gateway meets more destinations in a year than a spool has
//! numbers for queues.

use std::time::Duration;

use vere_units::Timestamp;

use super::{QueueNumber, Queues};
use crate::destination::Destination;

/// A message that is on its way into a queue.
#[derive(Debug)]
#[must_use = "the queue stays until `arrived` is told"]
pub struct Expected {
    number: QueueNumber,
    /// Which of all queues that ever had the number.
    serial: u32,
}

impl Expected {
    /// The queue that it is expected in.
    #[must_use]
    pub const fn number(&self) -> QueueNumber {
        self.number
    }
}

impl Queues {
    /// A message is on its way into a queue, which stays until [`arrived`](Self::arrived) is told as often.
    pub fn expect(&mut self, number: QueueNumber) -> Expected {
        let serial = self.queues.get_mut(number).map_or(0, |queue| {
            queue.expected += 1;
            queue.serial
        });
        Expected { number, serial }
    }

    /// A message that was expected has been admitted, or does not come. A queue that has the number since is not
    /// meant.
    pub fn arrived(&mut self, expected: Expected) {
        let queue = self.queues.get_mut(expected.number);
        if let Some(queue) = queue.filter(|queue| queue.serial == expected.serial) {
            queue.expected = queue.expected.saturating_sub(1);
        }
    }

    /// Looks at `count` numbers from where the last call ended, and gives the queues among them that have
    /// had no message for `idle`.
    pub fn vacant(&mut self, count: u32, idle: Duration, now: Timestamp) -> Vec<QueueNumber> {
        let end = self.queues.end();
        let mut vacant = Vec::new();
        for _ in 0..count.min(end) {
            let number = self.retire_at % end;
            self.retire_at = number + 1;
            if self.is_vacant(number, idle, now) {
                vacant.push(number);
            }
        }
        vacant
    }

    /// Forgets a queue, if it is still one of those that [`vacant`](Self::vacant) gives; the host then ends
    /// it in the spool. What was learned of its site goes with the last of its queues.
    pub fn retire(
        &mut self,
        number: QueueNumber,
        idle: Duration,
        now: Timestamp,
    ) -> Option<Destination> {
        if !self.is_vacant(number, idle, now) {
            return None;
        }
        self.remove_queue(number)
    }

    /// Forgets the queue of a destination that could not be made in the spool, and so never held anything.
    pub fn not_made(&mut self, number: QueueNumber, destination: &Destination) {
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

    fn remove_queue(&mut self, number: QueueNumber) -> Option<Destination> {
        let queue = self.queues.get(number)?;
        let (place, site) = (queue.place, queue.site);
        for gate in [place, site].into_iter().flatten() {
            self.exchange(number, Some(gate), None);
        }
        let queue = self.queues.remove(number)?;
        self.numbers.remove(&queue.destination);
        Some(queue.destination)
    }

    /// Whether nothing is lost with a queue: no message, no attempt, no pause, and nothing that its place
    /// or its site has to remember.
    fn is_vacant(&self, number: QueueNumber, idle: Duration, now: Timestamp) -> bool {
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
