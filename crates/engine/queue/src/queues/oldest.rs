//! The acceptance time of the oldest message, without a search through all queues.
//!
//! The first message of a queue changes all the time, and the time is requested once a second. So a heap holds for
//! each queue a lower bound of the first message's time, and only the top of the heap is compared with its queue:
//! moving queues cost time when they reach the top, and standing queues cost none.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};

use vere_units::{QueueId, Timestamp};

use super::Queues;
use super::step::Step;

/// Surplus entries, beyond twice the number of queues with messages, before empty queues are removed from the heap.
const SPARE: usize = 1_024;

/// For each queue with messages, as of the queue's last comparison or first message: a lower bound of its first
/// message's time.
#[derive(Debug, Default)]
pub(super) struct Ages(RefCell<BinaryHeap<Reverse<(Timestamp, QueueId)>>>);

impl Ages {
    /// Follows a step of the wall clock.
    pub(super) fn step(&mut self, step: Step) {
        let noted = std::mem::take(self.0.get_mut());
        let stepped = noted.into_iter().map(|Reverse((mut time, number))| {
            step.apply(&mut time);
            Reverse((time, number))
        });
        *self.0.get_mut() = stepped.collect();
    }

    /// Adds a queue that has a message and no entry yet.
    pub(super) fn note(&self, number: QueueId, accepted: Timestamp) {
        self.0.borrow_mut().push(Reverse((accepted, number)));
    }
}

impl Queues {
    /// When the oldest message of all queues was accepted.
    #[must_use]
    pub fn oldest(&self) -> Option<Timestamp> {
        let mut ages = self.ages.0.borrow_mut();
        if ages.len() > 2 * self.active.len() + SPARE {
            self.tidy(&mut ages);
        }
        while let Some(mut top) = ages.peek_mut() {
            let Reverse((noted, number)) = *top;
            let queue = self.queues.get(number);
            let first = queue.and_then(|queue| queue.order.head());
            match first.map(|slot| self.entries[slot].accepted) {
                Some(accepted) if accepted <= noted => return Some(accepted),
                Some(accepted) => top.0.0 = accepted,
                None => {
                    PeekMut::pop(top);
                    queue.inspect(|queue| queue.aged.set(false));
                }
            }
        }
        None
    }

    /// Removes the entries of empty queues, which would otherwise remain as long as an older entry is at the top.
    fn tidy(&self, ages: &mut BinaryHeap<Reverse<(Timestamp, QueueId)>>) {
        let mut seen = HashSet::new();
        ages.retain(|Reverse((_, number))| {
            let queue = self.queues.get(*number);
            let has_some = queue.is_some_and(|queue| queue.order.head().is_some());
            if !has_some {
                queue.inspect(|queue| queue.aged.set(false));
            }
            has_some && seen.insert(*number)
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use vere_units::{RecordId, TraceId};

    use super::*;
    use crate::destination::Destination;
    use crate::envelope::tests::sample;
    use crate::envelope::{Envelope, ScheduleHead};
    use crate::policy::Policy;
    use crate::settlement::{Attempt, Disposition, RecipientResult};

    const OLD: QueueId = QueueId(0);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    /// A message enters a queue.
    fn come(queues: &mut Queues, number: QueueId, record: u64, accepted: Timestamp) {
        let destination = Destination::domain(format!("d{number}.example"));
        queues.register(number, destination, accepted);
        let envelope = Envelope {
            head: ScheduleHead::new(
                TraceId::new(u64::from(number.0) << 20 | record),
                accepted,
                1_024,
            ),
            ..sample()
        };
        let body = Some(Bytes::from_static(b"body"));
        assert!(queues.admit(number, RecordId(record), envelope, body, accepted));
    }

    /// The first message of a queue is delivered.
    fn leave(queues: &mut Queues, number: QueueId, now: Timestamp) {
        let job = queues.take(number, false, now).expect("one waits");
        let result = RecipientResult {
            disposition: Disposition::Delivered,
            status: "2.0.0".to_owned(),
            reply: "250 taken".to_owned(),
            from_remote: true,
        };
        let attempt = Attempt {
            remote: "mx".to_owned(),
            reports_taken_over: true,
            results: vec![result; job.envelope.mail.recipients.len()],
        };
        let settled = queues.settle(number, &job, &attempt, now);
        assert_eq!(settled.expect("in flight").remaining, None);
    }

    /// While an old message stands at the top, no entry below is compared: queues emptied since would keep their
    /// entries for as long as the message waits.
    #[test]
    fn queues_that_come_and_go_behind_an_old_message_keep_no_places() {
        let mut queues = Queues::new(Policy::default());
        come(&mut queues, OLD, 0, at(1));
        let many = u32::try_from(SPARE).expect("a few") + 100;
        for number in 1..=many {
            let now = at(u64::from(number) + 1);
            come(&mut queues, QueueId(number), 0, now);
            leave(&mut queues, QueueId(number), now);
        }
        let places = |queues: &Queues| queues.ages.0.borrow().len();
        assert_eq!(places(&queues), 1 + many as usize);
        assert_eq!(queues.oldest(), Some(at(1)));
        assert_eq!(places(&queues), 1);

        // A queue without an entry gets an entry with its next message.
        come(&mut queues, QueueId(7), 1, at(10_000));
        leave(&mut queues, OLD, at(10_001));
        assert_eq!(queues.oldest(), Some(at(10_000)));
    }
}
