//! Envelopes and bodies in memory: those of the messages that leave next, within one budget.
//!
//! A new message keeps its envelope and body in memory as long as all messages before it in its
//! queue do. Other envelopes and bodies come back from the spool in blocks, just before their turn
//! ([`Next::Fetch`]). When the budget is used up, the queue with the most memory gives way to a
//! queue with less. A queue that grows beside a slow destination therefore does not send the mail
//! of all other queues through the spool.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use bytes::Bytes;
use vere_units::{QueueId, RecordId, TraceId};

use super::entries::{Slot, Standing};
use super::queue::Queue;
use super::{Job, Queues, Wanted};
use crate::envelope::Envelope;

/// Estimated octets of an envelope without its texts.
const ENVELOPE_OCTETS: usize = 400;
/// Estimated octets of a recipient without the address.
const RECIPIENT_OCTETS: usize = 120;
/// Ready messages with envelopes in memory below which the queue asks for the next block.
const AT_HAND_LOW: usize = 32;
/// Records in one block.
const FETCH_RECORDS: u32 = 128;
/// Bounds of the octets in one block, which is a part of the budget.
const FETCH_OCTETS: std::ops::RangeInclusive<usize> = (64 << 10)..=(1 << 20);
/// Divisor of the budget that gives the size of a block.
const FETCH_SHARE: usize = 128;

/// Messages examined when a queue has to evict an envelope.
const EVICT_STEPS: usize = 64;

/// Envelope and perhaps body of one message.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) envelope: Rc<Envelope>,
    pub(super) body: Option<Bytes>,
    octets: usize,
    serial: u32,
}

/// A head's place in its queue's line. Slots are reused, so the serial number tells the slot's
/// heads apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadPlace {
    slot: Slot,
    serial: u32,
}

/// Envelopes and bodies in memory, beside the entries.
#[derive(Debug, Default)]
pub(super) struct Heads {
    by_slot: HashMap<Slot, Head>,
    octets: usize,
    /// Serial number of the newest head; wraps after 2^32.
    serial: u32,
    /// Queues with heads, by the logarithm of their memory, so that the set changes rarely.
    holders: BTreeSet<(u32, QueueId)>,
}

/// The result of a fetched block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Supplied {
    /// The queue continues.
    Taken,
    /// The spool lacks the requested record. The queue forgets the message, as no delivery is
    /// possible.
    Lost(TraceId),
}

impl Heads {
    /// Octets of all heads.
    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Head> {
        self.by_slot.get(&slot)
    }

    fn insert(&mut self, number: QueueId, queue: &mut Queue, slot: Slot, mut head: Head) {
        self.octets += head.octets;
        self.change(number, queue, queue.head_octets + head.octets);
        self.serial = self.serial.wrapping_add(1);
        head.serial = self.serial;
        self.by_slot.insert(slot, head);
        // Places of removed heads stay in the line until they are three times as many as the live
        // ones.
        if queue.heads.len() > 64 && queue.heads.len() > 4 * (queue.ready_at_hand + queue.in_flight)
        {
            queue.heads.retain(|place| self.holds(*place));
        }
        let serial = self.serial;
        queue.heads.push_back(HeadPlace { slot, serial });
    }

    /// Whether the place's head is still in memory.
    fn holds(&self, place: HeadPlace) -> bool {
        let head = self.by_slot.get(&place.slot);
        head.is_some_and(|head| head.serial == place.serial)
    }

    pub(super) fn remove(&mut self, number: QueueId, queue: &mut Queue, slot: Slot) {
        if let Some(head) = self.by_slot.remove(&slot) {
            self.octets -= head.octets;
            self.change(number, queue, queue.head_octets - head.octets);
        }
    }

    fn change(&mut self, number: QueueId, queue: &mut Queue, octets: usize) {
        let (before, after) = (class(queue.head_octets), class(octets));
        queue.head_octets = octets;
        if before != after {
            self.holders.remove(&(before, number));
            if after > 0 {
                self.holders.insert((after, number));
            }
        }
    }
}

/// The size class of a queue's memory in doublings; 0 for an empty share.
const fn class(octets: usize) -> u32 {
    usize::BITS - octets.leading_zeros()
}

fn octets_of(envelope: &Envelope, body: Option<&Bytes>) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let recipients: usize = envelope
        .mail
        .recipients
        .iter()
        .map(|one| RECIPIENT_OCTETS + one.address.len() + text(&one.orcpt))
        .sum();
    ENVELOPE_OCTETS
        + recipients
        + text(&envelope.mail.reverse_path)
        + text(&envelope.head.last_reply)
        + body.map_or(0, Bytes::len)
}

impl Queues {
    /// Keeps envelope and body of a ready message within the budget; a body that does not fit is
    /// dropped before the envelope. `needed`: the message's turn has come, so the envelope is kept
    /// even beyond the budget.
    pub(super) fn keep(
        &mut self,
        number: QueueId,
        slot: Slot,
        envelope: Rc<Envelope>,
        body: Option<Bytes>,
        needed: bool,
    ) -> bool {
        let whole = octets_of(&envelope, body.as_ref());
        let fits = self.make_room(number, whole);
        if !fits && !needed {
            return false;
        }
        let body = body.filter(|_| fits);
        let Some(queue) = self.queues.get_mut(number) else {
            return false;
        };
        let octets = if fits {
            whole
        } else {
            octets_of(&envelope, None)
        };
        self.entries[slot].at_hand = true;
        if self.entries[slot].standing == Standing::Ready {
            queue.ready_at_hand += 1;
        }
        let head = Head {
            envelope,
            body,
            octets,
            serial: 0,
        };
        self.heads.insert(number, queue, slot, head);
        true
    }

    /// Whether `octets` fit into the budget, after queues with more memory than this queue gave
    /// way.
    fn make_room(&mut self, number: QueueId, octets: usize) -> bool {
        let budget = self.policy.head_memory_max;
        while self.heads.octets + octets > budget {
            let own = self
                .queues
                .get(number)
                .map_or(0, |queue| class(queue.head_octets + octets));
            match self.heads.holders.last() {
                Some(&(class, largest)) if class > own && largest != number => {
                    if !self.evict_last(largest) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        true
    }

    /// Evicts the envelope of the ready message that entered memory last. Returns false if the
    /// examined heads are all in flight.
    fn evict_last(&mut self, number: QueueId) -> bool {
        let Some(queue) = self.queues.get_mut(number) else {
            return false;
        };
        for _ in 0..EVICT_STEPS {
            let Some(place) = queue.heads.pop_back() else {
                return false;
            };
            let (slot, held) = (place.slot, self.heads.holds(place));
            if held && self.entries[slot].standing == Standing::Ready {
                queue.ready_at_hand -= 1;
                self.entries[slot].at_hand = false;
                self.heads.remove(number, queue, slot);
                return true;
            }
            if held {
                queue.heads.push_front(place);
            }
        }
        false
    }

    /// Evicts the envelopes of all ready messages, because the queue is paused.
    pub(super) fn evict_all(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number) else {
            return;
        };
        for place in std::mem::take(&mut queue.heads) {
            let (slot, held) = (place.slot, self.heads.holds(place));
            if held && self.entries[slot].standing == Standing::Ready {
                queue.ready_at_hand -= 1;
                self.entries[slot].at_hand = false;
                self.heads.remove(number, queue, slot);
            } else if held {
                queue.heads.push_back(place);
            }
        }
    }

    /// The block that a queue needs next, if its heads run low.
    pub(super) fn wanted(&self, number: QueueId, queue: &Queue) -> Option<Wanted> {
        // One message is enough to test whether a destination works again.
        let (low, records) = if self.gates.is_probing(queue) {
            (1, 1)
        } else {
            (AT_HAND_LOW, FETCH_RECORDS)
        };
        if queue.fetching || queue.fetch_after.is_some() {
            return None;
        }
        // Envelopes of later messages are useless while the next message lacks its envelope.
        let first = self.turn(queue);
        let led = first.is_none_or(|slot| self.entries[slot].at_hand);
        if led && queue.ready_at_hand >= queue.ready.min(low) {
            return None;
        }
        let slot = match first {
            Some(first) if !led => first,
            _ => queue.first_missing(&self.entries)?,
        };
        let octets = self.policy.head_memory_max / FETCH_SHARE;
        let octets = octets.clamp(*FETCH_OCTETS.start(), *FETCH_OCTETS.end());
        Some(Wanted {
            queue: number,
            from: self.entries[slot].record,
            trace: self.entries[slot].trace,
            records,
            octets: u32::try_from(octets).unwrap_or(u32::MAX),
        })
    }

    /// Takes the fetched records of `wanted` in their order, starting with the wanted record.
    /// Records of messages that are not ready any more are ignored.
    pub fn supply(
        &mut self,
        wanted: &Wanted,
        records: impl IntoIterator<Item = (RecordId, Envelope, Bytes)>,
    ) -> Supplied {
        let number = wanted.queue;
        let Some(queue) = self.queues.get_mut(number) else {
            return Supplied::Taken;
        };
        queue.fetching = false;
        let first = self
            .entries
            .find_record(wanted.trace, number, wanted.from)
            .filter(|slot| self.entries[*slot].standing == Standing::Ready);
        for (record, envelope, body) in records {
            let slot = self
                .entries
                .find_record(envelope.head.trace, number, record);
            let ready = |slot: &Slot| {
                let entry = &self.entries[*slot];
                entry.standing == Standing::Ready && !entry.at_hand
            };
            if let Some(slot) = slot.filter(ready) {
                let needed = record == wanted.from;
                self.keep(number, slot, Rc::new(envelope), Some(body), needed);
            }
        }
        self.make_runnable(number);
        match first {
            Some(slot) if !self.entries[slot].at_hand => {
                self.forget(slot);
                Supplied::Lost(wanted.trace)
            }
            _ => Supplied::Taken,
        }
    }

    /// The job of an entry in flight whose envelope is in memory.
    pub(super) fn job(&self, slot: Slot) -> Option<Job> {
        let head = self.heads.get(slot)?;
        Some(Job {
            record: self.entries[slot].record,
            slot,
            envelope: Rc::clone(&head.envelope),
            body: head.body.clone(),
        })
    }
}
