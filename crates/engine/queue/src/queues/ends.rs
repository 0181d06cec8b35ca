//! The ends of messages with an end of their own (`ScheduleHead::expires`), queue by queue, the first end first.
//!
//! Other messages expire by age, and age grows with the place in the queue. These messages end in any order, so no
//! queue can be searched from its head.

use std::collections::BTreeSet;

use vere_units::{QueueId, Timestamp};

use super::entries::Slot;

/// Queue, end and place of each message that may expire.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeSet<(QueueId, Timestamp, Slot)>);

impl Ends {
    pub(super) fn insert(&mut self, number: QueueId, end: Timestamp, slot: Slot) {
        self.0.insert((number, end, slot));
    }

    pub(super) fn remove(&mut self, number: QueueId, end: Timestamp, slot: Slot) {
        self.0.remove(&(number, end, slot));
    }

    /// Removes everything.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Slot> + use<> {
        let all = std::mem::take(&mut self.0);
        all.into_iter().map(|(_, _, slot)| slot)
    }

    /// The first queue from `from` on that has such messages.
    pub(super) fn first_queue(&self, from: QueueId) -> Option<QueueId> {
        let first = (from, Timestamp::ZERO, 0);
        self.0.range(first..).next().map(|(number, _, _)| *number)
    }

    /// The messages of a queue that end until `now`, the first end first.
    pub(super) fn until(&self, number: QueueId, now: Timestamp) -> impl Iterator<Item = Slot> {
        let first = (number, Timestamp::ZERO, 0);
        let ends = self.0.range(first..=(number, now, Slot::MAX));
        ends.map(|(_, _, slot)| *slot)
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().map(|(_, _, slot)| *slot)
    }
}
