//! When the oldest message of all queues was accepted, without looking at all queues.
//!
//! The first message of a queue changes all the time, and is asked for once a second. So a heap has for each queue a
//! time that its first message is not older than, and only what is at its top is compared with the queue as it is:
//! queues that move cost something when they come to the top, and those that stand still nothing.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashSet};

use vere_units::Timestamp;

use super::{QueueNumber, Queues};

/// So many more than twice the queues with messages are kept before some are looked for that have none.
const SPARE: usize = 1_024;

/// For each queue that had messages when it was at the top last, or came to have some: how old its first one is
/// at most.
#[derive(Debug, Default)]
pub(super) struct Ages(RefCell<BinaryHeap<Reverse<(Timestamp, QueueNumber)>>>);

impl Ages {
    /// A queue that is not in it has a message.
    pub(super) fn note(&self, number: QueueNumber, accepted: Timestamp) {
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

    /// Forgets queues that have no messages any more, which else stay as long as an older one is at the top.
    fn tidy(&self, ages: &mut BinaryHeap<Reverse<(Timestamp, QueueNumber)>>) {
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
