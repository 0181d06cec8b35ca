//! The quarantine: messages that wait for a person, beside the order of their queue.
//!
//! A message of the quarantine counts in its queue and in the bounds of all queues, and is in a list of its
//! own. The message is neither ready nor deferred, does not expire, causes no delay report, and in a queue with
//! strict order holds up no other message. A queue command for a destination does not reach the message.
//!
//! A release is a new beginning: the host moves the record to the end of its queue, with the time of the
//! release as the time of acceptance. Order, expiry and the walk through a queue then need no exception for old
//! messages among young ones, also after a restart.
//!
//! The age of a message counts as for expiry: by its time of acceptance, which follows steps of the clock, and
//! not within one full retry after a step or a start.

use std::time::Duration;

use bytes::Bytes;
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

use super::entries::{Slot, Standing};
use super::{MessageSummary, Queues};
use crate::envelope::Envelope;

impl Queues {
    /// Puts a message that is in no list into the quarantine.
    pub(super) fn keep_aside(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot];
        entry.standing = Standing::Quarantined;
        let number = entry.queue;
        self.totals.quarantined += 1;
        if let Some(queue) = self.queues.get_mut(number) {
            queue.quarantined += 1;
        }
    }

    /// The messages of the quarantine and their queues: queue by queue, in acceptance order. A message whose
    /// release is being written is left out.
    pub fn quarantined(&self) -> impl Iterator<Item = (QueueId, MessageSummary)> {
        let numbers = self.active.iter().copied();
        let filled = numbers.filter(|number| {
            let queue = self.queues.get(*number);
            queue.is_some_and(|queue| queue.quarantined > 0)
        });
        filled.flat_map(|number| {
            let first = self.queues.get(number);
            let first = first.and_then(|queue| queue.quarantine.head());
            let messages = self.messages_from(first, usize::MAX);
            let waiting = messages.filter(|message| message.standing == Standing::Quarantined);
            waiting.map(move |message| (number, message))
        })
    }

    /// The messages of a queue's quarantine that are at least as old as `keep`, the oldest first: at most
    /// `limit`.
    #[must_use]
    pub fn aged(
        &self,
        number: QueueId,
        keep: Duration,
        now: Timestamp,
        limit: usize,
    ) -> Vec<MessageSummary> {
        if now < self.spared_until {
            return Vec::new();
        }
        let first = self.queues.get(number);
        let first = first.and_then(|queue| queue.quarantine.head());
        self.messages_from(first, usize::MAX)
            // Acceptance order is the order of ages, so the first young message ends the search.
            .take_while(|message| now.saturating_since(message.accepted) >= keep)
            .filter(|message| message.standing == Standing::Quarantined)
            .take(limit)
            .collect()
    }

    /// Takes a message out of the quarantine until its release is written. Returns false if the message is not
    /// in the quarantine, or its release is being written.
    pub fn begin_release(&mut self, number: QueueId, record: RecordId, trace: TraceId) -> bool {
        let found = self.entries.find_record(trace, number, record);
        let is_aside = |slot: &Slot| self.entries[*slot].standing == Standing::Quarantined;
        let Some(slot) = found.filter(is_aside) else {
            return false;
        };
        self.take_out(slot);
        self.fly(slot);
        true
    }

    /// Puts a message back whose release was not written.
    pub fn take_back(&mut self, number: QueueId, record: RecordId, trace: TraceId) {
        if let Some(slot) = self.leaving_quarantine(number, record, trace) {
            self.take_out(slot);
            self.keep_aside(slot);
        }
    }

    /// Replaces a message by its released record, which is the newest of its queue.
    pub fn released(
        &mut self,
        number: QueueId,
        (old, new): (RecordId, RecordId),
        envelope: Envelope,
        body: Option<Bytes>,
        now: Timestamp,
    ) {
        let gone = self.leaving_quarantine(number, old, envelope.head.trace);
        // The queue is never empty meanwhile.
        self.admit(number, new, envelope, body, now);
        if let Some(slot) = gone {
            self.forget(slot);
        }
    }

    /// Forgets a message whose record is gone. Returns false if the message is not being released.
    pub fn lose_released(&mut self, number: QueueId, record: RecordId, trace: TraceId) -> bool {
        let found = self.leaving_quarantine(number, record, trace);
        if let Some(slot) = found {
            self.forget(slot);
        }
        found.is_some()
    }

    /// A message whose release is being written.
    fn leaving_quarantine(
        &self,
        number: QueueId,
        record: RecordId,
        trace: TraceId,
    ) -> Option<Slot> {
        let slot = self.entries.find_record(trace, number, record)?;
        let entry = &self.entries[slot];
        (entry.aside && entry.standing == Standing::InFlight).then_some(slot)
    }
}
