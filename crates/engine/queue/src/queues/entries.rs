//! The memory of every queued message: one small entry of fixed size, in lists that run through the
//! entries, and an index by trace id.
//!
//! A message costs [`ENTRY_OCTETS`] and 5 to 11 octets in the index, whatever the size of envelope
//! and body, which come back from the spool. A message with a lifetime of its own costs 8 octets more,
//! beside the entries of its chunk. No operation here reads other entries than the entries
//! named in the call.

use std::time::Duration;

use hashbrown::HashTable;
use vere_units::{QueueId, RecordId, Timestamp, TraceId};

/// The place of an entry.
pub(super) type Slot = u32;
/// No entry.
pub(super) const NONE: Slot = Slot::MAX;
/// Octets of one entry.
pub(super) const ENTRY_OCTETS: usize = 64;
/// Entries that are allocated and freed together: 256 KiB.
const CHUNK: usize = 4096;
/// The lifetime of a message that expires by the age of all messages.
const NO_LIFETIME: u64 = u64::MAX;

/// The state of a message in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The message waits for its turn.
    Ready,
    /// A delivery or an operator's action is working on the message, or the result is not written
    /// yet.
    InFlight,
    /// The message waits for the time of its next attempt.
    Deferred,
    /// An operator holds the message.
    Held,
    /// The message is in the quarantine.
    Quarantined,
}

/// Neighbours in one list.
#[derive(Debug, Clone, Copy)]
struct Links {
    previous: Slot,
    next: Slot,
}

const UNLINKED: Links = Links {
    previous: NONE,
    next: NONE,
};

/// One message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) record: RecordId,
    pub(super) trace: TraceId,
    pub(super) accepted: Timestamp,
    /// The due time of a deferred message; the end of the hold of a held message.
    pub(super) due: Timestamp,
    pub(super) queue: QueueId,
    /// Octets of the body.
    pub(super) size: u32,
    links: [Links; 2],
    pub(super) attempts: u16,
    /// The wheel's list of the entry, while the entry waits for a time.
    pub(super) list: u16,
    pub(super) standing: Standing,
    pub(super) priority: i8,
    /// Whether envelope and perhaps body are in memory.
    pub(super) at_hand: bool,
    /// Whether the entry is in the list of its queue's quarantine, in place of acceptance order.
    pub(super) aside: bool,
}

const _: () = assert!(size_of::<Entry>() == ENTRY_OCTETS);

impl Entry {
    /// An entry in no list.
    pub(super) const fn new(queue: QueueId, record: RecordId, trace: TraceId) -> Self {
        Self {
            record,
            trace,
            accepted: Timestamp::from_millis(0),
            due: Timestamp::from_millis(0),
            queue,
            size: 0,
            links: [UNLINKED; 2],
            attempts: 0,
            list: 0,
            standing: Standing::Ready,
            priority: 0,
            at_hand: false,
            aside: false,
        }
    }
}

/// Which of the two lists an entry is in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chain {
    /// All messages of its queue, in acceptance order; for messages of the quarantine, all of them.
    Order = 0,
    /// Messages that wait for the same turn or time.
    Place = 1,
}

/// A list that runs through entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: Slot,
    tail: Slot,
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl List {
    pub(super) const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
    };

    pub(super) const fn head(&self) -> Option<Slot> {
        some(self.head)
    }

    pub(super) const fn tail(&self) -> Option<Slot> {
        some(self.tail)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

const fn some(slot: Slot) -> Option<Slot> {
    if slot == NONE { None } else { Some(slot) }
}

/// Entries that share one allocation. Without live entries the chunk has no memory.
#[derive(Debug, Default)]
struct Chunk {
    entries: Vec<Entry>,
    /// Lifetimes in ms of the entries in the same places, or [`NO_LIFETIME`]; empty until an entry has a lifetime.
    lifetimes: Vec<u64>,
    /// The first free place of the chunk; further free places follow through their links.
    free: Slot,
    used: usize,
    /// Whether the chunk is listed in [`Entries::room`].
    listed: bool,
}

/// All entries of all queues.
#[derive(Debug, Default)]
pub(super) struct Entries {
    chunks: Vec<Chunk>,
    /// Chunks with free places; the last one is used first.
    room: Vec<u32>,
    /// Chunks without memory.
    vacant: Vec<u32>,
    by_trace: HashTable<Slot>,
}

/// Trace ids are our own (a time and a counter), so no one can choose them to collide.
const fn hash(trace: TraceId) -> u64 {
    // Fibonacci hashing; the table looks at the upper and the lower bits.
    let mixed = trace.as_u64().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

impl std::ops::Index<Slot> for Entries {
    type Output = Entry;

    fn index(&self, slot: Slot) -> &Entry {
        &self.chunks[slot as usize / CHUNK].entries[slot as usize % CHUNK]
    }
}

impl std::ops::IndexMut<Slot> for Entries {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.chunks[slot as usize / CHUNK].entries[slot as usize % CHUNK]
    }
}

impl Entries {
    /// Number of live entries.
    pub(super) fn len(&self) -> usize {
        self.by_trace.len()
    }

    /// Inserts an entry that is in no list yet.
    pub(super) fn insert(&mut self, entry: Entry) -> Slot {
        let number = self.chunk_with_room();
        let chunk = &mut self.chunks[number as usize];
        let slot = chunk.free;
        let place = slot as usize % CHUNK;
        chunk.free = chunk.entries[place].links[Chain::Place as usize].next;
        chunk.entries[place] = entry;
        if let Some(lifetime) = chunk.lifetimes.get_mut(place) {
            *lifetime = NO_LIFETIME;
        }
        chunk.used += 1;
        if chunk.free == NONE {
            chunk.listed = false;
            self.room.pop();
        }
        let chunks = &self.chunks;
        let rehash = |slot: &Slot| {
            hash(chunks[*slot as usize / CHUNK].entries[*slot as usize % CHUNK].trace)
        };
        self.by_trace.insert_unique(hash(entry.trace), slot, rehash);
        slot
    }

    /// The number of a chunk with a free place, which is also the last of `room`.
    fn chunk_with_room(&mut self) -> u32 {
        while let Some(&number) = self.room.last() {
            let chunk = &mut self.chunks[number as usize];
            if chunk.free != NONE {
                return number;
            }
            chunk.listed = false;
            self.room.pop();
        }
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            u32::try_from(self.chunks.len() - 1).unwrap_or(u32::MAX)
        });
        let first = number * CHUNK as u32;
        let mut entries = vec![Entry::new(QueueId(0), RecordId(0), TraceId::default()); CHUNK];
        for (slot, entry) in (first + 1..).zip(&mut entries) {
            entry.links[Chain::Place as usize].next = slot;
        }
        if let Some(last) = entries.last_mut() {
            last.links[Chain::Place as usize].next = NONE;
        }
        self.chunks[number as usize] = Chunk {
            entries,
            lifetimes: Vec::new(),
            free: first,
            used: 0,
            listed: true,
        };
        self.room.push(number);
        number
    }

    /// Removes an entry that is in no list any more.
    pub(super) fn remove(&mut self, slot: Slot) {
        let trace = self[slot].trace;
        if let Ok(found) = self
            .by_trace
            .find_entry(hash(trace), |other| *other == slot)
        {
            found.remove();
        }
        let number = slot as usize / CHUNK;
        let chunk = &mut self.chunks[number];
        chunk.entries[slot as usize % CHUNK].links[Chain::Place as usize].next = chunk.free;
        chunk.free = slot;
        chunk.used -= 1;
        let number = number as u32;
        // One empty chunk stays, so that a queue that comes and goes costs no memory calls.
        if chunk.used == 0 && self.room.iter().any(|other| *other != number) {
            *chunk = Chunk {
                free: NONE,
                ..Chunk::default()
            };
            self.room.retain(|other| *other != number);
            self.vacant.push(number);
        } else if !chunk.listed {
            chunk.listed = true;
            self.room.push(number);
        }
    }

    /// The age at which an entry expires, if the entry has a lifetime of its own.
    pub(super) fn lifetime(&self, slot: Slot) -> Option<Duration> {
        let lifetimes = &self.chunks[slot as usize / CHUNK].lifetimes;
        let lifetime = lifetimes.get(slot as usize % CHUNK).copied();
        lifetime
            .filter(|millis| *millis != NO_LIFETIME)
            .map(Duration::from_millis)
    }

    /// Gives an entry a lifetime of its own, once.
    pub(super) fn set_lifetime(&mut self, slot: Slot, lifetime: Duration) {
        let lifetimes = &mut self.chunks[slot as usize / CHUNK].lifetimes;
        if lifetimes.is_empty() {
            *lifetimes = vec![NO_LIFETIME; CHUNK];
        }
        let millis = u64::try_from(lifetime.as_millis()).unwrap_or(NO_LIFETIME);
        lifetimes[slot as usize % CHUNK] = millis.min(NO_LIFETIME - 1);
    }

    /// The entries of a message: one per queue that holds it.
    pub(super) fn find(&self, trace: TraceId) -> impl Iterator<Item = Slot> {
        self.by_trace
            .iter_hash(hash(trace))
            .copied()
            .filter(move |slot| self[*slot].trace == trace)
    }

    /// All entries, in no order.
    pub(super) fn slots(&self) -> Vec<Slot> {
        self.by_trace.iter().copied().collect()
    }

    /// The entry of one record.
    pub(super) fn find_record(
        &self,
        trace: TraceId,
        queue: QueueId,
        record: RecordId,
    ) -> Option<Slot> {
        self.find(trace)
            .find(|slot| self[*slot].queue == queue && self[*slot].record == record)
    }

    /// The entry after `slot` in the list.
    pub(super) fn next(&self, chain: Chain, slot: Slot) -> Option<Slot> {
        some(self[slot].links[chain as usize].next)
    }

    /// Appends an entry to a list.
    pub(super) fn push_back(&mut self, list: &mut List, chain: Chain, slot: Slot) {
        self[slot].links[chain as usize] = Links {
            previous: list.tail,
            next: NONE,
        };
        match some(list.tail) {
            Some(tail) => self[tail].links[chain as usize].next = slot,
            None => list.head = slot,
        }
        list.tail = slot;
    }

    /// Puts an entry at the front of a list.
    pub(super) fn push_front(&mut self, list: &mut List, chain: Chain, slot: Slot) {
        self[slot].links[chain as usize] = Links {
            previous: NONE,
            next: list.head,
        };
        match some(list.head) {
            Some(head) => self[head].links[chain as usize].previous = slot,
            None => list.tail = slot,
        }
        list.head = slot;
    }

    /// Removes an entry from the middle or an end of its list.
    pub(super) fn unlink(&mut self, list: &mut List, chain: Chain, slot: Slot) {
        let Links { previous, next } = self[slot].links[chain as usize];
        match some(previous) {
            Some(previous) => self[previous].links[chain as usize].next = next,
            None => list.head = next,
        }
        match some(next) {
            Some(next) => self[next].links[chain as usize].previous = previous,
            None => list.tail = previous,
        }
        self[slot].links[chain as usize] = UNLINKED;
    }

    /// Removes the first entry of a list.
    pub(super) fn pop_front(&mut self, list: &mut List, chain: Chain) -> Option<Slot> {
        let slot = list.head()?;
        self.unlink(list, chain, slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        Entry::new(QueueId(0), RecordId(number), TraceId::new(number / 2))
    }

    #[test]
    fn entries_are_found_by_trace_and_record() {
        let mut entries = Entries::default();
        let slots: Vec<_> = (0..10_000).map(|n| entries.insert(entry(n))).collect();
        for (number, slot) in (0..).zip(&slots) {
            let trace = TraceId::new(number / 2);
            assert_eq!(
                entries.find_record(trace, QueueId(0), RecordId(number)),
                Some(*slot)
            );
            assert_eq!(entries.find(trace).count(), 2);
        }
        assert_eq!(entries.find(TraceId::new(5_000)).count(), 0);
        assert_eq!(
            entries.find_record(TraceId::new(1), QueueId(1), RecordId(2)),
            None
        );
    }

    #[test]
    fn a_lifetime_is_of_one_entry_and_not_of_the_next_in_its_place() {
        let mut entries = Entries::default();
        let first = entries.insert(entry(0));
        let second = entries.insert(entry(1));
        assert!(
            entries.chunks[0].lifetimes.is_empty(),
            "mail without lifetimes costs nothing"
        );
        let day = Duration::from_secs(86_400);
        entries.set_lifetime(first, day);
        entries.set_lifetime(second, Duration::MAX);
        assert_eq!(entries.lifetime(first), Some(day));
        let longest = Duration::from_millis(NO_LIFETIME - 1);
        assert_eq!(entries.lifetime(second), Some(longest));
        entries.remove(first);
        assert_eq!(entries.insert(entry(2)), first);
        assert_eq!(entries.lifetime(first), None);
    }

    #[test]
    fn memory_of_chunks_without_entries_is_given_back_and_used_again() {
        let mut entries = Entries::default();
        let chunks = |entries: &Entries| {
            let with_memory = |chunk: &&Chunk| !chunk.entries.is_empty();
            entries.chunks.iter().filter(with_memory).count()
        };
        for round in 0..3 {
            let slots: Vec<_> = (0..5 * CHUNK as u64)
                .map(|n| entries.insert(entry(n)))
                .collect();
            assert_eq!(chunks(&entries), 5, "round {round}");
            assert_eq!(entries.chunks.len(), 5, "round {round}");
            for slot in slots {
                entries.remove(slot);
            }
            assert_eq!((entries.len(), chunks(&entries)), (0, 1));
        }
    }

    #[test]
    fn lists_keep_their_order_whatever_leaves() {
        let mut entries = Entries::default();
        let mut list = List::default();
        let slots: Vec<_> = (0..6).map(|n| entries.insert(entry(n))).collect();
        for slot in &slots[1..] {
            entries.push_back(&mut list, Chain::Place, *slot);
        }
        entries.push_front(&mut list, Chain::Place, slots[0]);
        for gone in [0, 3, 5] {
            entries.unlink(&mut list, Chain::Place, slots[gone]);
        }
        let mut rest = Vec::new();
        while let Some(slot) = entries.pop_front(&mut list, Chain::Place) {
            rest.push(entries[slot].record);
        }
        assert_eq!(rest, [1, 2, 4].map(RecordId));
        assert!(list.is_empty());
    }
}
