//! One queue: a list of runs that maps record numbers to places of records.
//!
//! Numbers are dense, so a subtraction finds a record's slot. A run ends at a gap in the numbers
//! (refused records) and at a fixed length, so that the memory of deleted records at the head is
//! freed.
//!
//! A record that stays long after its neighbours have ended (a message deferred for days, say) does
//! not keep its run. Such a record is a *stray*, in a separate tree, and costs some 50 octets
//! instead of the run's 16 KiB.

use std::collections::{BTreeMap, VecDeque};

use vere_spoolwire::{KeptGrants, QueueCharter, QueueId, QueueLimits, QueueStat, RecordId};

use super::memory::Memory;
use super::place::{RecordPlace, SegmentKey};

/// Number of slots of a run.
const RUN_LEN: usize = 1024;
/// A run is kept while at least one in `SPARSE` of its slots lives, counted from the first living
/// slot on. A stray costs about as much as three slots, and records must not move there and back
/// often.
const SPARSE: usize = 16;

/// Slots that an empty queue keeps for new records: 1 KiB.
const IDLE_SLOTS: usize = 64;
/// Memory of a slot and of a stray, in octets.
const SLOT_OCTETS: usize = size_of::<Slot>();
const STRAY_OCTETS: usize = 50;
/// Memory of a queue without its names, in octets: an entry in the list of queues and one in the
/// index by name.
const QUEUE_OCTETS: usize = size_of::<Queue>() + 64;

/// Value for "no segment": the slot is empty.
const NOWHERE: SegmentKey = SegmentKey::MAX;

/// Place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// Place of the PUT frame, or of the item of a BATCH.
    pub(super) home: RecordPlace,
    /// Length of metadata and body, in octets.
    pub(super) len: u32,
    detail: u32,
}

/// Flag that separates the two kinds of detail; metadata is never this long.
const IS_SIDE: u32 = 1 << 31;

/// Further information in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// `home` is an unchanged PUT frame; length of its metadata in octets.
    Plain(u32),
    /// Index of the record's `Side`.
    Side(u32),
}

impl Slot {
    const EMPTY: Self = Self {
        home: RecordPlace {
            segment: NOWHERE,
            offset: 0,
        },
        len: 0,
        detail: 0,
    };

    pub(super) const fn new(home: RecordPlace, len: u32, detail: Detail) -> Self {
        let detail = match detail {
            Detail::Plain(meta_len) => meta_len,
            Detail::Side(index) => index | IS_SIDE,
        };
        Self { home, len, detail }
    }

    pub(super) const fn detail(&self) -> Detail {
        if self.detail & IS_SIDE == 0 {
            Detail::Plain(self.detail)
        } else {
            Detail::Side(self.detail & !IS_SIDE)
        }
    }

    const fn is_empty(&self) -> bool {
        self.home.segment == NOWHERE
    }
}

#[derive(Debug, Default)]
struct Run {
    base: u64,
    live: u32,
    /// First slot that may be living.
    head: usize,
    slots: Vec<Slot>,
}

impl Run {
    #[inline]
    fn index(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.base)?).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    /// Restarts an empty run with this slot. Returns the number of slots by which the run grew,
    /// like [`Run::set`].
    #[inline]
    fn begin(&mut self, id: u64, slot: Slot) -> usize {
        let before = self.slots.capacity();
        self.slots.clear();
        self.slots.push(slot);
        (self.base, self.head, self.live) = (id, 0, 1);
        self.slots.capacity() - before
    }

    /// Whether a record beyond the end of the run would leave only few slots empty.
    fn is_near(&self, id: u64) -> bool {
        id - self.base < (self.slots.len() + SPARSE) as u64
    }

    /// Whether nearly no slot of the run lives. Empty slots at the head do not count.
    #[inline]
    const fn is_sparse(&self) -> bool {
        (self.live as usize) * SPARSE < self.slots.len() - self.head
    }

    #[inline]
    fn set(&mut self, id: u64, slot: Slot) -> usize {
        let before = self.slots.capacity();
        let index = (id - self.base) as usize;
        if index >= self.slots.len() {
            if index > self.slots.len() {
                self.slots.resize(index, Slot::EMPTY);
            }
            self.slots.push(slot);
        } else {
            self.slots[index] = slot;
        }
        self.live += 1;
        self.head = self.head.min(index);
        self.slots.capacity() - before
    }
}

/// Trial figures of a queue during the check of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trial {
    /// Batch to which these figures belong.
    pub(super) batch: u64,
    pub(super) length: u64,
    pub(super) octets: u64,
    pub(super) next: u64,
}

/// Memory of a queue without records, in octets.
fn itself(name: &str, charter: QueueCharter<'_>) -> u64 {
    (QUEUE_OCTETS + 2 * name.len() + charter.readers.octets().len()) as u64
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: Box<str>,
    pub(super) limits: QueueLimits,
    /// Accounts that may read the queue, besides accounts that may own the group. Without grants
    /// the readers of the group may read the queue.
    pub(super) readers: KeptGrants,
    /// Next record number, above all numbers ever used.
    pub(super) next: u64,
    pub(super) length: u64,
    pub(super) octets: u64,
    pub(super) trial: Trial,
    runs: VecDeque<Run>,
    /// Records outside of the runs.
    strays: BTreeMap<u64, Slot>,
    /// Slots of all runs, used or not.
    slots: usize,
    /// Memory of the queue without records, in octets.
    itself: u64,
    /// Octets with which the queue is counted in the node's memory.
    counted: u64,
}

impl Queue {
    pub(super) fn new(name: &str, charter: QueueCharter<'_>, next: RecordId) -> Self {
        Self {
            name: name.into(),
            limits: charter.limits,
            readers: charter.readers.into(),
            next: next.0,
            length: 0,
            octets: 0,
            trial: Trial::default(),
            runs: VecDeque::new(),
            strays: BTreeMap::new(),
            slots: 0,
            itself: itself(name, charter),
            counted: 0,
        }
    }

    /// Updates the node's memory count to the queue's present memory, without the cost that each
    /// record has anyway.
    #[inline]
    pub(super) fn count(&mut self, memory: &mut Memory) {
        let places = self.slots * SLOT_OCTETS + self.strays.len() * STRAY_OCTETS;
        let taken = self.itself + places as u64;
        if taken != self.counted {
            memory.queues = memory.queues + taken - self.counted;
            self.counted = taken;
        }
    }

    /// Returns the octets with which the queue must be counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> u64 {
        let runs = self.runs.iter().map(|run| run.slots.capacity());
        let places = runs.sum::<usize>() * SLOT_OCTETS + self.strays.len() * STRAY_OCTETS;
        self.itself + places as u64
    }

    /// Removes the queue from the node's memory count.
    pub(super) fn uncount(&mut self, memory: &mut Memory) {
        memory.queues -= std::mem::take(&mut self.counted);
    }

    /// Sets the charter, and raises the next number to at least `next`.
    pub(super) fn renew(&mut self, charter: QueueCharter<'_>, next: RecordId) {
        self.itself = itself(&self.name, charter);
        self.limits = charter.limits;
        self.readers = charter.readers.into();
        self.next = self.next.max(next.0);
    }

    /// Whether the limits permit one more record of `more` octets, given length and octets of a
    /// trial.
    pub(super) const fn has_room(&self, length: u64, octets: u64, more: u64) -> bool {
        length < self.limits.length_max && octets.saturating_add(more) <= self.limits.bytes_max
    }

    /// Inserts a record. Its number is above all others, except for records from a log.
    #[inline(always)]
    pub(super) fn insert(&mut self, id: RecordId, slot: Slot) {
        self.length += 1;
        self.octets += u64::from(slot.len);
        let id = id.0;
        if id < self.next {
            self.insert_between(id, slot);
            return;
        }
        self.next = id + 1;
        match self.runs.back_mut() {
            Some(run) if run.live == 0 => self.slots += run.begin(id, slot),
            Some(run) if id - run.base < RUN_LEN as u64 => self.slots += run.set(id, slot),
            _ => self.append_run(id, slot),
        }
    }

    #[cold]
    fn insert_run(&mut self, at: usize, id: u64, slot: Slot) {
        let mut run = Run {
            base: id,
            ..Run::default()
        };
        let last = self.runs.back().filter(|_| at == self.runs.len());
        if last.is_some_and(|last| last.slots.len() == RUN_LEN) {
            run.slots.reserve_exact(RUN_LEN);
        }
        run.set(id, slot);
        self.slots += run.slots.capacity();
        self.runs.insert(at, run);
    }

    #[cold]
    fn append_run(&mut self, id: u64, slot: Slot) {
        self.insert_run(self.runs.len(), id, slot);
        // The run before was kept as the last one, however sparse.
        if let Some(before) = self.runs.len().checked_sub(2)
            && self.runs[before].is_sparse()
        {
            self.retire(before);
        }
    }

    #[cold]
    fn insert_between(&mut self, id: u64, slot: Slot) {
        let after = self.runs.partition_point(|run| run.base <= id);
        let bound = self.runs.get(after).map_or(u64::MAX, |run| run.base);
        if let Some(run) = after.checked_sub(1).map(|index| &mut self.runs[index])
            && id - run.base < RUN_LEN as u64
            && id < bound
            && run.is_near(id)
        {
            self.slots += run.set(id, slot);
            return;
        }
        // A stray close to the new record starts a run with it; a log restores close records in
        // order.
        let start = self.runs.get(after.wrapping_sub(1));
        let start = start.map_or(0, |run| run.base + run.slots.len() as u64);
        let start = start.max(id.saturating_sub(SPARSE as u64));
        let neighbour = (start < id).then(|| self.strays.range(start..id).next_back());
        match neighbour
            .flatten()
            .map(|(&neighbour, &first)| (neighbour, first))
        {
            Some((neighbour, first)) => {
                self.strays.remove(&neighbour);
                self.insert_run(after, neighbour, first);
                self.slots += self.runs[after].set(id, slot);
            }
            None => drop(self.strays.insert(id, slot)),
        }
    }

    #[inline(always)]
    fn run_of(&self, id: u64) -> Option<(usize, usize)> {
        // Deletions concern heads, lookups concern tails; the middle is rare.
        let last = self.runs.len().checked_sub(1)?;
        for at in [0, last] {
            if let Some(index) = self.runs[at].index(id) {
                return Some((at, index));
            }
        }
        self.find_run(id)
    }

    #[cold]
    fn find_run(&self, id: u64) -> Option<(usize, usize)> {
        let at = self
            .runs
            .partition_point(|run| run.base <= id)
            .checked_sub(1)?;
        Some((at, self.runs[at].index(id)?))
    }

    /// Returns the slot of a living record.
    pub(super) fn slot(&self, id: RecordId) -> Option<Slot> {
        let found = self
            .run_of(id.0)
            .map(|(run, index)| self.runs[run].slots[index]);
        let found = found.filter(|slot| !slot.is_empty());
        found.or_else(|| self.strays.get(&id.0).copied())
    }

    /// Returns the slot of a living record, for changing its place. [`Queue::resize`] changes its
    /// length.
    pub(super) fn slot_mut(&mut self, id: RecordId) -> Option<&mut Slot> {
        match self.run_of(id.0) {
            Some((run, index)) if !self.runs[run].slots[index].is_empty() => {
                Some(&mut self.runs[run].slots[index])
            }
            _ => self.strays.get_mut(&id.0),
        }
    }

    /// Adjusts the octets to a new length of a record's metadata.
    pub(super) fn resize(&mut self, from: u32, to: u32) {
        self.octets = self.octets - u64::from(from) + u64::from(to);
    }

    /// Removes a record.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: RecordId) -> Option<Slot> {
        let Some((at, index)) = self.run_of(id.0) else {
            return self.remove_stray(id.0);
        };
        let run = &mut self.runs[at];
        let slot = run.slots[index];
        if slot.is_empty() {
            return self.remove_stray(id.0);
        }
        run.slots[index].home.segment = NOWHERE;
        run.live -= 1;
        if index == run.head {
            run.head += 1;
            while run.slots.get(run.head).is_some_and(Slot::is_empty) {
                run.head += 1;
            }
        }
        let sparse = run.is_sparse() || run.live == 0;
        self.length -= 1;
        self.octets -= u64::from(slot.len);
        if sparse {
            self.retire(at);
        }
        Some(slot)
    }

    #[cold]
    fn remove_stray(&mut self, id: u64) -> Option<Slot> {
        let slot = self.strays.remove(&id)?;
        self.length -= 1;
        self.octets -= u64::from(slot.len);
        Some(slot)
    }

    /// Drops a run with nearly no living records. The last run is kept for new records, and shrunk
    /// when no record of it lives: most empty queues stay empty for long.
    #[inline]
    fn retire(&mut self, at: usize) {
        if at + 1 < self.runs.len() {
            self.give_up_run(at);
        } else if let Some(run) = self.runs.get_mut(at)
            && run.live == 0
            && run.slots.capacity() > IDLE_SLOTS
        {
            self.slots -= run.slots.capacity();
            run.slots = Vec::with_capacity(IDLE_SLOTS);
            run.head = 0;
            self.slots += run.slots.capacity();
        }
    }

    #[cold]
    fn give_up_run(&mut self, at: usize) {
        let Some(run) = self.runs.remove(at) else {
            return;
        };
        self.slots -= run.slots.capacity();
        if run.live > 0 {
            let ids = run.base..;
            let living = ids.zip(run.slots).filter(|(_, slot)| !slot.is_empty());
            self.strays.extend(living);
        }
    }

    /// Iterates over living records in order, from `from` on.
    pub(super) fn iter_from(&self, from: RecordId) -> impl Iterator<Item = (RecordId, Slot)> {
        let start = self
            .runs
            .partition_point(|run| run.base <= from.0)
            .saturating_sub(1);
        let in_runs = self.runs.iter().skip(start).flat_map(move |run| {
            let skip = usize::try_from(from.0.saturating_sub(run.base)).unwrap_or(usize::MAX);
            let skip = skip.max(run.head);
            run.slots
                .iter()
                .enumerate()
                .skip(skip)
                .filter_map(|(index, slot)| {
                    (!slot.is_empty()).then_some((RecordId(run.base + index as u64), *slot))
                })
        });
        let strays = self.strays.range(from.0..);
        let strays = strays.map(|(id, slot)| (RecordId(*id), *slot));
        let (mut in_runs, mut strays) = (in_runs.peekable(), strays.peekable());
        std::iter::from_fn(move || match (strays.peek(), in_runs.peek()) {
            (Some((stray, _)), Some((other, _))) if stray.0 > other.0 => in_runs.next(),
            (Some(_), _) => strays.next(),
            (None, _) => in_runs.next(),
        })
    }

    pub(super) fn first(&self) -> RecordId {
        if self.length == 0 {
            return RecordId(self.next);
        }
        self.iter_from(RecordId(0))
            .next()
            .map_or(RecordId(self.next), |(id, _)| id)
    }

    pub(super) fn stat(&self, id: QueueId) -> QueueStat {
        QueueStat {
            id,
            name: self.name.to_string(),
            limits: self.limits,
            readers: self.readers.clone(),
            first: self.first(),
            next: RecordId(self.next),
            length: self.length,
            bytes: self.octets,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::config::NodeConfig;
    use super::*;
    use crate::testing::secret;

    fn slot(len: u32) -> Slot {
        Slot::new(
            RecordPlace {
                segment: 1,
                offset: len,
            },
            len,
            Detail::Plain(0),
        )
    }

    fn slots(queue: &Queue) -> usize {
        let runs = queue.runs.iter();
        runs.map(|run| run.slots.capacity()).sum()
    }

    #[test]
    fn a_drained_queue_keeps_no_runs_but_one() {
        let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1));
        for id in 1..=10_000 {
            queue.insert(RecordId(id), slot(1));
        }
        assert!(queue.runs.len() > 1);
        for id in (1..=10_000).rev() {
            assert!(queue.remove(RecordId(id)).is_some());
        }
        assert!(queue.remove(RecordId(1)).is_none());
        assert_eq!((queue.runs.len(), queue.length, queue.octets), (1, 0, 0));
        assert!(slots(&queue) <= IDLE_SLOTS, "{}", slots(&queue));
        assert_eq!(queue.first(), RecordId(10_001));
    }

    /// Queues that were long once kept 16 KiB each that nobody counted, and their names.
    #[test]
    fn a_queue_counts_as_memory_with_or_without_records() {
        let mut memory = Memory::new(&NodeConfig::new(secret()));
        let name = "x".repeat(200);
        let mut queue = Queue::new(&name, QueueCharter::default(), RecordId(1));
        queue.count(&mut memory);
        let empty = memory.used();
        assert!((400..1_000).contains(&empty), "{empty}");
        for id in 1..=10_000 {
            queue.insert(RecordId(id), slot(1));
            queue.count(&mut memory);
        }
        assert!(memory.used() > 10_000 * SLOT_OCTETS as u64);
        for id in 1..=10_000 {
            queue.remove(RecordId(id)).expect("it is there");
            queue.count(&mut memory);
        }
        let idle = memory.used() - empty;
        assert!(idle <= (IDLE_SLOTS * SLOT_OCTETS) as u64, "{idle}");
        queue.uncount(&mut memory);
        assert_eq!(memory.used(), 0);
    }

    /// What waits for days beside millions that come and go.
    #[test]
    fn what_stays_behind_does_not_keep_its_run() {
        let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1));
        let stays = |id: u64| id % 1_000 == 7;
        for id in 1..=1_000_000 {
            queue.insert(RecordId(id), slot(1));
            // Twenty are under way at a time, and end in another order than they began.
            let ended = id.saturating_sub(20) ^ 3;
            if ended > 0 && !stays(ended) {
                queue.remove(RecordId(ended));
            }
        }
        assert!(queue.strays.len() >= 990, "{}", queue.strays.len());
        assert!(slots(&queue) <= 3 * RUN_LEN, "{} slots", slots(&queue));
        // Compaction rewrites a stray, which remains a stray.
        for id in (1..900_000).filter(|id| stays(*id)) {
            let before = queue.remove(RecordId(id)).expect("it is there");
            queue.insert(RecordId(id), before);
        }
        assert!(slots(&queue) <= 3 * RUN_LEN, "{} slots", slots(&queue));
        let left = queue.iter_from(RecordId(0)).take(900);
        assert!(
            left.map(|(id, _)| id.0)
                .eq((0..900).map(|nth| nth * 1_000 + 7))
        );
        for id in (1..1_000_000).filter(|id| stays(*id)) {
            assert!(queue.remove(RecordId(id)).is_some(), "{id}");
        }
        assert_eq!(queue.strays.len(), 0);
    }

    /// Each message leaves before the next one comes, but for one in a while.
    #[test]
    fn what_stays_behind_in_a_slow_queue_does_not_keep_its_run_either() {
        let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1));
        for id in 1..=100_000 {
            queue.insert(RecordId(id), slot(1));
            if id % 1_024 != 500 {
                queue.remove(RecordId(id)).expect("it is there");
            }
        }
        assert!(queue.runs.len() <= 2, "{} runs", queue.runs.len());
        assert_eq!(queue.length, 98);
    }

    /// A log brings records back that lie below what it knows to be the end.
    #[test]
    fn what_a_log_brings_back_side_by_side_is_a_run() {
        let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1_000_000));
        for id in (5..50_000).chain([70_000, 90_000]) {
            queue.insert(RecordId(id), slot(1));
        }
        assert_eq!(queue.strays.len(), 2);
        assert!(queue.runs.len() <= 50, "{} runs", queue.runs.len());
        assert_eq!(queue.length, 49_997);
    }

    #[test]
    fn a_queue_that_is_emptied_in_order_has_no_strays() {
        let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1));
        for id in 1..=100_000 {
            queue.insert(RecordId(id), slot(1));
        }
        for pair in 0..50_000 {
            for id in [2 * pair + 2, 2 * pair + 1] {
                queue.remove(RecordId(id)).expect("it is there");
                assert_eq!(queue.strays.len(), 0, "{id}");
            }
        }
    }

    proptest! {
        /// Against an ordered map: insertions with gaps, removals anywhere, and what a log brings
        /// back out of order.
        #[test]
        fn behaves_like_an_ordered_map(
            steps in proptest::collection::vec((0..4, any::<prop::sample::Index>(), 0..3000_u64), 0..300),
        ) {
            let mut queue = Queue::new("q", QueueCharter::default(), RecordId(1));
            let mut model = BTreeMap::new();
            let mut gone = Vec::new();
            for (step, index, gap) in steps {
                let known: Vec<u64> = model.keys().copied().collect();
                match step {
                    0 | 1 => {
                        let id = queue.next + if step == 0 { 0 } else { gap };
                        gone.extend((queue.next..id).take(3));
                        queue.insert(RecordId(id), slot(gap as u32));
                        model.insert(id, gap as u32);
                    }
                    2 if !known.is_empty() => {
                        let id = known[index.index(known.len())];
                        let removed = queue.remove(RecordId(id)).map(|slot| slot.len);
                        prop_assert_eq!(removed, model.remove(&id));
                        gone.push(id);
                    }
                    _ if !gone.is_empty() => {
                        let id = gone.swap_remove(index.index(gone.len()));
                        queue.insert(RecordId(id), slot(7));
                        model.insert(id, 7);
                    }
                    _ => {}
                }
                let from = index.index(queue.next as usize) as u64;
                let left: Vec<_> =
                    queue.iter_from(RecordId(from)).map(|(id, slot)| (id.0, slot.len)).collect();
                let right: Vec<_> = model.range(from..).map(|(id, len)| (*id, *len)).collect();
                prop_assert_eq!(left, right);
                prop_assert_eq!(queue.length, model.len() as u64);
                prop_assert_eq!(queue.slots, slots(&queue));
                prop_assert_eq!(queue.slot(RecordId(from)).is_some(), model.contains_key(&from));
            }
        }
    }
}
