//! Messages whose own end has come.
//!
//! The set of ends has each message with an end of its own that waits or is in flight. Held messages and messages of
//! the quarantine do not expire, and are not in the set. Memory has the distance between acceptance and end: like the
//! age, the end follows steps of the clock.

use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::entries::{Slot, Standing};
use super::{MessageSummary, Queues};

impl Queues {
    /// A message's own end, by the clock in memory.
    fn end_of(&self, slot: Slot) -> Option<Timestamp> {
        let lifetime = self.entries.lifetime(slot)?;
        Some(self.entries[slot].accepted + lifetime)
    }

    /// Notes the end of a message that may expire from now on.
    pub(super) fn await_end(&mut self, slot: Slot) {
        let entry = &self.entries[slot];
        if let Some(end) = self.end_of(slot).filter(|_| !entry.aside) {
            self.ends.insert(entry.queue, end, slot);
        }
    }

    /// Forgets the end of a message that does not expire, or has left. Returns whether the message has an end of its own.
    pub(super) fn drop_end(&mut self, slot: Slot) -> bool {
        let end = self.end_of(slot);
        if let Some(end) = end {
            self.ends.remove(self.entries[slot].queue, end, slot);
        }
        end.is_some()
    }

    /// Follows a step of the wall clock, after the entries.
    pub(super) fn renew_ends(&mut self) {
        for slot in self.ends.drain() {
            self.await_end(slot);
        }
    }

    /// Whether a message is given up at its next failure.
    pub(super) fn is_over(&self, slot: Slot, now: Timestamp) -> bool {
        match self.end_of(slot) {
            Some(end) => now >= self.spared_until.max(end),
            None => self.is_expired(self.entries[slot].accepted, now),
        }
    }

    /// The next queue after `after` with [`overdue`](Self::overdue) messages. Looks once at each queue that has
    /// messages with an end of their own.
    #[must_use]
    pub fn next_overdue(&self, after: Option<QueueId>, now: Timestamp) -> Option<QueueId> {
        let mut from = after.map_or(QueueId(0), QueueId::next);
        loop {
            // The last number follows itself.
            let number = self.ends.first_queue(from)?;
            if after.is_some_and(|after| number <= after) {
                return None;
            }
            if self.overdue_slots(number, now).next().is_some() {
                return Some(number);
            }
            from = Some(number.next()).filter(|next| *next > number)?;
        }
    }

    /// The messages of a queue whose own end has come: at most `limit`, the first to end, in the order of records.
    /// Nothing in flight, held or in a held queue, and nothing for one full retry after a step of the clock or a start.
    #[must_use]
    pub fn overdue(&self, number: QueueId, now: Timestamp, limit: usize) -> Vec<MessageSummary> {
        let slots = self.overdue_slots(number, now).take(limit);
        let mut found: Vec<_> = slots.map(|slot| self.message_at(slot)).collect();
        found.sort_unstable_by_key(|message| message.record);
        found
    }

    /// Whether one message is among [`overdue`](Self::overdue) messages.
    #[must_use]
    pub fn is_overdue(
        &self,
        number: QueueId,
        record: RecordId,
        trace: TraceId,
        now: Timestamp,
    ) -> bool {
        let slot = self.entries.find_record(trace, number, record);
        slot.is_some_and(|slot| {
            let has_come = self.end_of(slot).is_some_and(|end| end <= now);
            has_come && self.may_end(number, now) && self.waits(slot)
        })
    }

    /// Whether messages of a queue may expire.
    fn may_end(&self, number: QueueId, now: Timestamp) -> bool {
        let queue = self.queues.get(number);
        let is_held = queue.is_none_or(|queue| queue.held_until.is_some());
        now >= self.spared_until && !is_held
    }

    fn waits(&self, slot: Slot) -> bool {
        let standing = self.entries[slot].standing;
        matches!(standing, Standing::Ready | Standing::Deferred)
    }

    /// Passes over messages in flight, which are few.
    fn overdue_slots(&self, number: QueueId, now: Timestamp) -> impl Iterator<Item = Slot> {
        let some = self.may_end(number, now).then_some(());
        let slots = some.map(|()| self.ends.until(number, now));
        slots.into_iter().flatten().filter(|slot| self.waits(*slot))
    }
}
