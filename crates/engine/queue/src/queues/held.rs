//! Messages that an operator holds one by one, each for a time or until it is released.
//!
//! A held message stands in no list of those that wait for their turn; one whose hold has an end is in the
//! wheel, with that end as its time. When its next attempt was due is kept beside, so that a hold neither
//! uses up an attempt nor brings one forward. Memory: nothing for a message that is not held.
//!
//! In a queue that keeps its order a held message holds those behind it, as one does that is put off: what
//! may pass it is no longer in order.

use std::collections::HashMap;

use vere_units::{Timestamp, TraceId};

use super::entries::{Slot, Standing};
use super::step::Step;
use super::{MessageSummary, QueueNumber, Queues, RecordId};
use crate::order::FOREVER;

/// Due at once.
const AT_ONCE: Timestamp = Timestamp::from_millis(0);

/// When the next attempt at each held message is due.
#[derive(Debug, Default)]
pub(super) struct Held {
    due: HashMap<Slot, Timestamp>,
}

impl Held {
    /// Follows a step of the wall clock.
    pub(super) fn step(&mut self, step: Step) {
        self.due.values_mut().for_each(|due| step.apply(due));
    }

    /// When the next attempt at a held message is due, if not at once.
    pub(super) fn due(&self, slot: Slot) -> Option<Timestamp> {
        let due = self.due.get(&slot).copied();
        due.filter(|due| *due != AT_ONCE)
    }

    /// All that are held.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.due.keys().copied()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }
}

impl Queues {
    /// Messages that are held one by one, with their queues, in no order.
    pub fn held_messages(&self) -> impl Iterator<Item = (QueueNumber, MessageSummary)> {
        let held = self.held.slots();
        held.map(|slot| (self.entries[slot].queue, self.message_at(slot)))
    }

    /// Holds a message until a time ([`FOREVER`]: until it is released); one that is held gets the new
    /// time. False: it is being delivered, or gone.
    pub fn hold_message(
        &mut self,
        number: QueueNumber,
        record: RecordId,
        trace: TraceId,
        until: Timestamp,
    ) -> bool {
        let Some(slot) = self.entries.find_record(trace, number, record) else {
            return false;
        };
        let due = match self.entries[slot].standing {
            Standing::InFlight => return false,
            Standing::Ready => AT_ONCE,
            Standing::Deferred => self.entries[slot].due,
            Standing::Held => self.held.due(slot).unwrap_or(AT_ONCE),
        };
        self.take_out(slot);
        if let Some(queue) = self.queues.get_mut(number) {
            self.heads.remove(number, queue, slot);
        }
        self.entries[slot].at_hand = false;
        self.keep_held(slot, until, due);
        self.make_runnable(number);
        true
    }

    /// Ends the hold of a message: it goes on where it stood. False: it is not held.
    pub fn release_message(
        &mut self,
        number: QueueNumber,
        record: RecordId,
        trace: TraceId,
        now: Timestamp,
    ) -> bool {
        let found = self.entries.find_record(trace, number, record);
        let Some(slot) = found.filter(|slot| self.entries[*slot].standing == Standing::Held) else {
            return false;
        };
        let due = self.held.due(slot);
        self.take_out(slot);
        self.go_on(slot, due, now);
        true
    }

    /// Holds a message that is in no list.
    pub(super) fn keep_held(&mut self, slot: Slot, until: Timestamp, due: Timestamp) {
        let entry = &mut self.entries[slot];
        entry.standing = Standing::Held;
        entry.due = until;
        let number = entry.queue;
        self.held.due.insert(slot, due);
        if until != FOREVER {
            self.wheel.insert(&mut self.entries, slot);
        }
        self.totals.held += 1;
        if let Some(queue) = self.queues.get_mut(number) {
            queue.held += 1;
        }
    }

    /// Takes a held message out of the lists of those; whoever calls it counts.
    pub(super) fn no_longer_held(&mut self, slot: Slot) {
        if self.entries[slot].due != FOREVER {
            self.wheel.remove(&mut self.entries, slot);
        }
        self.held.due.remove(&slot);
    }

    /// The end of a hold has come, and the wheel has given the message out.
    pub(super) fn hold_over(&mut self, slot: Slot, now: Timestamp) {
        let due = self.held.due.remove(&slot);
        self.totals.held -= 1;
        if let Some(queue) = self.queues.get_mut(self.entries[slot].queue) {
            queue.held -= 1;
        }
        self.go_on(slot, due, now);
    }

    /// Lets a message that is in no list go on with what it waited for.
    fn go_on(&mut self, slot: Slot, due: Option<Timestamp>, now: Timestamp) {
        let number = self.entries[slot].queue;
        if let Some(due) = due.filter(|due| *due > now) {
            self.defer(slot, due);
        } else if let Some(queue) = self.queues.get_mut(number) {
            queue.push_ready(&mut self.entries, slot);
        }
        self.make_runnable(number);
    }
}
