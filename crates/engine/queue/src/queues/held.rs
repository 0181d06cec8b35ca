//! Messages that an operator holds individually, either for a time or until their release.
//!
//! A held message is in no list of waiting messages. If the hold has an end, the message is in the
//! wheel with that end as its time. The due time of the next attempt is kept separately, so a hold
//! neither uses up an attempt nor brings one forward. Messages that are not held cost no memory.
//!
//! In a queue with strict order a held message blocks all later messages, as a deferred message
//! does. Otherwise later messages would overtake and break the order.

use std::collections::HashMap;

use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::entries::{Slot, Standing};
use super::step::Step;
use super::{MessageSummary, Queues};
use crate::order::FOREVER;

/// Marks messages that are due at once.
const AT_ONCE: Timestamp = Timestamp::from_millis(0);

/// Due times of the next attempts of held messages.
#[derive(Debug, Default)]
pub(super) struct Held {
    due: HashMap<Slot, Timestamp>,
}

impl Held {
    /// Follows a step of the wall clock.
    pub(super) fn step(&mut self, step: Step) {
        self.due.values_mut().for_each(|due| step.apply(due));
    }

    /// The due time of a held message's next attempt, unless the message is due at once.
    pub(super) fn due(&self, slot: Slot) -> Option<Timestamp> {
        let due = self.due.get(&slot).copied();
        due.filter(|due| *due != AT_ONCE)
    }

    /// All held messages.
    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.due.keys().copied()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.due.len()
    }
}

impl Queues {
    /// Individually held messages and their queues, in no order.
    pub fn held_messages(&self) -> impl Iterator<Item = (QueueId, MessageSummary)> {
        let held = self.held.slots();
        held.map(|slot| (self.entries[slot].queue, self.message_at(slot)))
    }

    /// Holds a message until a time ([`FOREVER`]: until its release). A message held already gets
    /// the new time. Returns false if the message is being delivered, in the quarantine, or gone.
    pub fn hold_message(
        &mut self,
        number: QueueId,
        record: RecordId,
        trace: TraceId,
        until: Timestamp,
    ) -> bool {
        let Some(slot) = self.entries.find_record(trace, number, record) else {
            return false;
        };
        let due = match self.entries[slot].standing {
            Standing::InFlight | Standing::Quarantined => return false,
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

    /// Ends the hold of a message, which returns to its state before. Returns false if the message
    /// is not held.
    pub fn release_message(
        &mut self,
        number: QueueId,
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

    /// Marks a message as held that is in no list.
    pub(super) fn keep_held(&mut self, slot: Slot, until: Timestamp, due: Timestamp) {
        self.drop_end(slot);
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

    /// Removes a held message from the wheel and from the due times. The caller updates the
    /// counters.
    pub(super) fn no_longer_held(&mut self, slot: Slot) {
        self.await_end(slot);
        if self.entries[slot].due != FOREVER {
            self.wheel.remove(&mut self.entries, slot);
        }
        self.held.due.remove(&slot);
    }

    /// Handles the end of a hold, after the wheel has returned the message.
    pub(super) fn hold_over(&mut self, slot: Slot, now: Timestamp) {
        let due = self.held.due.remove(&slot);
        self.await_end(slot);
        self.totals.held -= 1;
        if let Some(queue) = self.queues.get_mut(self.entries[slot].queue) {
            queue.held -= 1;
        }
        self.go_on(slot, due, now);
    }

    /// Puts a message that is in no list back into the wheel until `due`, or among the ready
    /// messages.
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
