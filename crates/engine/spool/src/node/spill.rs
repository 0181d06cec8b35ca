//! Spilling: cold segments go to the spill store, and return on request.
//!
//! Closed segments are written out whole, the least recently used first, and those at the head of a
//! queue last. Open segments and those referred to by pending output stay in memory. A closed
//! segment never changes. So a segment that was read back is in both places, and its memory can be
//! freed at once. Records end without a read; the last of them frees the slot. Entries that the log
//! holds at the start of the node stay there and are read back in the same way, except for the
//! log's newest segment.

mod relief;

use std::collections::{BTreeMap, VecDeque};

use vere_ports::spill::{SpillDone, SpillFull, SpillSlot, SpillStore};
use vere_ports::spool_log::{LogError, LogStretch, SpoolLog};
use vere_spoolwire::RecordId;

use super::group::Group;
use super::memory::Memory;
use super::place::{Backing, Residence, SegmentKey};
use super::segment::Segments;
use super::store::Store;

/// Maximum number of segments being written at the same time.
const LEAVING_MAX: usize = 8;
/// Maximum number of segments being read back at the same time.
const RETURNING_MAX: usize = 8;
/// Number of segments chosen at once.
const VICTIMS: usize = 32;
/// Records at the heads of queues that are kept in memory, of all queues together and of one queue.
const HEAD_RECORDS: usize = 64 << 10;
const HEAD_RECORDS_MAX: usize = 256;
/// Octets at the head of one queue that are kept in memory.
const HEAD_OCTETS: u64 = 1 << 20;

/// The spill store and its jobs.
#[derive(Debug)]
pub(super) struct Spill {
    store: Box<dyn SpillStore>,
    /// Jobs in the spill store: group and segment by slot.
    under_way: BTreeMap<SpillSlot, (usize, SegmentKey)>,
    /// Reads from the logs of groups.
    from_logs: BTreeMap<(usize, LogStretch), SegmentKey>,
    /// Octets of memory that are being written out.
    leaving: u64,
    /// Segments being read back.
    returning: usize,
    /// Segments to be written out next.
    victims: VecDeque<(usize, SegmentKey)>,
    /// The spill store was full or failed: no writing until a slot is freed or `retry_spill` is
    /// called.
    full: bool,
    /// Reason of the last failed write, until the host has taken it.
    trouble: Option<String>,
    /// Memory use from which on segments are written out, in octets.
    above: u64,
    /// Segments that the longest waiting connection needs: they stay until all of them are in
    /// memory.
    needed: Option<(usize, [SegmentKey; 2])>,
}

impl Spill {
    fn new(store: Box<dyn SpillStore>, above: Option<u64>, memory: &Memory) -> Self {
        Self {
            store,
            under_way: BTreeMap::new(),
            from_logs: BTreeMap::new(),
            leaving: 0,
            returning: 0,
            victims: VecDeque::new(),
            full: false,
            trouble: None,
            above: above.unwrap_or(memory.max() / 4 * 3),
            needed: None,
        }
    }

    /// Ends a job. Octets that differ from the written ones are an error.
    fn settle(
        &mut self,
        done: SpillDone,
        memory: &mut Memory,
        key: SegmentKey,
        segments: &mut Segments,
    ) -> Result<(), String> {
        let len = segments.at(key).len as u64;
        if segments.at(key).residence == Residence::Leaving {
            self.leaving -= len;
            // Without space in the spill store memory is not freed, and new records are refused.
            let slot = done.result.is_ok().then_some(done.slot);
            if let Err(reason) = done.result {
                (self.full, self.trouble) = (true, Some(reason));
            }
            segments.departed(memory, key, done.octets, slot);
            return Ok(());
        }
        self.read(memory, key, segments, (done.octets, done.result))
    }

    /// Ends a read.
    fn read(
        &mut self,
        memory: &mut Memory,
        key: SegmentKey,
        segments: &mut Segments,
        (octets, result): (Vec<u8>, Result<(), String>),
    ) -> Result<(), String> {
        self.returning -= 1;
        if segments.returned(memory, key, octets, result.is_ok()) {
            return Ok(());
        }
        Err(result.map_or_else(
            |reason| reason,
            |()| "the octets read differ from the octets written".to_owned(),
        ))
    }

    /// Ends finished jobs. Returns the groups that lost a segment.
    fn collect<L: SpoolLog>(
        &mut self,
        memory: &mut Memory,
        groups: &mut [Group<L>],
    ) -> Vec<(usize, String)> {
        let mut lost = Vec::new();
        while let Some(done) = self.store.poll() {
            let Some((index, key)) = self.under_way.remove(&done.slot) else {
                continue;
            };
            let segments = &mut groups[index].store.segments;
            if let Err(reason) = self.settle(done, memory, key, segments) {
                lost.push((index, reason));
            }
        }
        for (index, group) in groups.iter_mut().enumerate() {
            while let Some(done) = group.poll_read() {
                let Some(key) = self.from_logs.remove(&(index, done.stretch)) else {
                    continue;
                };
                let segments = &mut group.store.segments;
                let read = (done.octets, done.result);
                if let Err(reason) = self.read(memory, key, segments, read)
                    && let Some(journal) = &mut group.log
                    && journal.failure.is_none()
                {
                    journal.fail(unreadable(&reason));
                }
            }
            if !self.from_logs.keys().any(|(group, _)| *group == index) {
                group.former_log = None;
            }
        }
        lost
    }

    /// Starts the writing of a segment. Returns false without space in the spill store.
    fn write_out(
        &mut self,
        memory: &mut Memory,
        group: usize,
        key: SegmentKey,
        segments: &mut Segments,
    ) -> bool {
        let len = segments.at(key).len as u64;
        let (octets, fill) = segments.depart(key);
        match self.store.write(octets, fill) {
            Ok(slot) => {
                self.leaving += len;
                self.under_way.insert(slot, (group, key));
                true
            }
            Err(SpillFull { octets }) => {
                segments.departed(memory, key, octets, None);
                self.full = true;
                false
            }
        }
    }

    /// Whether another segment of `len` octets may be written at the same time.
    fn takes(&self, memory: &Memory, len: u64) -> bool {
        let within = self.leaving + len <= memory.max() / 8;
        self.leaving == 0 || (within && self.under_way.len() < LEAVING_MAX + RETURNING_MAX)
    }

    /// While a log is replayed: writes out the oldest segments, and waits for free memory.
    pub(super) fn relieve(&mut self, memory: &mut Memory, group: usize, segments: &mut Segments) {
        while !self.full && memory.used() - self.leaving > self.above {
            let Some((key, len)) = oldest(segments) else {
                return;
            };
            while !self.takes(memory, len) && self.wait(memory, segments) {}
            if !self.full {
                self.write_out(memory, group, key, segments);
            }
        }
    }

    fn wait(&mut self, memory: &mut Memory, segments: &mut Segments) -> bool {
        let Some(done) = self.store.wait() else {
            return false;
        };
        if let Some((_, key)) = self.under_way.remove(&done.slot) {
            // A replay reads no segment back, so no segment can be lost.
            let _ = self.settle(done, memory, key, segments);
        }
        true
    }

    /// Ends the replay of a log.
    pub(super) fn finish(&mut self, memory: &mut Memory, segments: &mut Segments) {
        while self.wait(memory, segments) {}
        self.free_dropped(memory);
    }

    pub(super) fn free_dropped(&mut self, memory: &mut Memory) {
        for slot in memory.dropped.drain(..) {
            self.store.free(slot);
            self.full = false;
        }
    }

    /// Starts reads and writes. `more`: octets of memory for which an owner waits.
    fn turn<L: SpoolLog>(&mut self, memory: &mut Memory, groups: &mut [Group<L>], more: u64) {
        self.free_dropped(memory);
        (memory.spilled, memory.spill_room) = (self.store.used(), self.store.room());
        self.read_back(memory, groups);
        let goal = self.above.min(memory.limit_for(more));
        memory.relief = !self.full;
        let copies_max = memory.copies_max;
        while memory.used() - self.leaving > goal {
            if self.evict(memory, groups, copies_max) {
                continue;
            }
            let victim = if self.full {
                None
            } else {
                self.victim(memory, groups)
            };
            let Some((group, key)) = victim else {
                let hard = memory.limit_for(more);
                if memory.used() - self.leaving > hard && self.evict(memory, groups, 0) {
                    continue;
                }
                memory.relief = self.leaving > 0;
                break;
            };
            let segments = &mut groups[group].store.segments;
            if !self.takes(memory, segments.at(key).len as u64) {
                self.victims.push_front((group, key));
                break;
            }
            self.write_out(memory, group, key, segments);
        }
    }

    /// Starts reading requested segments back, as far as memory has space; one read at a time may
    /// exceed the limit.
    fn read_back<L: SpoolLog>(&mut self, memory: &mut Memory, groups: &mut [Group<L>]) {
        for index in 0..groups.len() {
            while self.returning < RETURNING_MAX {
                let segments = &mut groups[index].store.segments;
                let Some(key) = segments.next_wanted() else {
                    break;
                };
                let len = segments.at(key).len as u64;
                while !memory.has_room(len) && self.evict(memory, groups, 0) {}
                if self.returning > 0 && !memory.has_room(len) {
                    return;
                }
                let group = &mut groups[index];
                let recalled = group.store.segments.recall(memory, key);
                match (recalled, &mut group.log) {
                    (Some((Backing::Spill(slot), octets)), _) => {
                        self.under_way.insert(slot, (index, key));
                        self.returning += 1;
                        self.store.read(slot, octets);
                    }
                    (Some((Backing::Log(stretch), octets)), Some(journal)) => {
                        self.from_logs.insert((index, stretch), key);
                        self.returning += 1;
                        journal.log.read_back(stretch, octets);
                    }
                    // A segment in the log is empty without its log.
                    (Some((Backing::Log(_), _)) | None, _) => {}
                }
            }
        }
    }

    /// Frees the memory of the least recently used copy, if copies take more than `most` octets.
    fn evict<L: SpoolLog>(&self, memory: &mut Memory, groups: &mut [Group<L>], most: u64) -> bool {
        let (mut octets, mut oldest) = (0, None);
        for (index, group) in groups.iter().enumerate() {
            let segments = &group.store.segments;
            for &key in &segments.copies {
                let segment = segments.at(key);
                octets += segment.len as u64;
                let needed = |(group, keys): (_, [_; 2])| group == index && keys.contains(&key);
                if segment.pins == 0 && !self.needed.is_some_and(needed) {
                    let found = Some((segment.used, index, key));
                    oldest = if oldest.is_none() {
                        found
                    } else {
                        oldest.min(found)
                    };
                }
            }
        }
        match oldest {
            Some((_, index, key)) if octets > most => {
                groups[index].store.segments.evict(memory, key);
                true
            }
            _ => false,
        }
    }

    /// Returns the next segment to be written out.
    fn victim<L: SpoolLog>(
        &mut self,
        memory: &Memory,
        groups: &[Group<L>],
    ) -> Option<(usize, SegmentKey)> {
        let valid =
            |&(group, key): &(usize, SegmentKey)| may_leave(&groups[group].store.segments, key);
        while let Some(victim) = self.victims.pop_front() {
            if valid(&victim) {
                return Some(victim);
            }
        }
        let mut found = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let heads = heads(&group.store, memory);
            let keys = group.store.segments.iter();
            found.extend(
                keys.filter(|(key, _)| may_leave(&group.store.segments, *key))
                    .map(|(key, segment)| (heads[key as usize], segment.used, index, key)),
            );
        }
        found.sort_unstable();
        let chosen = found.into_iter().take(VICTIMS);
        self.victims
            .extend(chosen.map(|(.., index, key)| (index, key)));
        self.victims.pop_front()
    }
}

fn unreadable(reason: &str) -> LogError {
    LogError::Damaged(format!("spilled records cannot be read back: {reason}"))
}

fn may_leave(segments: &Segments, key: SegmentKey) -> bool {
    segments.find(key).is_some_and(|segment| {
        let idle = !segment.open && segment.pins == 0 && segment.live > 0;
        idle && segment.residence == Residence::Memory
    })
}

/// Returns the oldest closed segment in memory.
fn oldest(segments: &Segments) -> Option<(SegmentKey, u64)> {
    let leaves = segments
        .iter()
        .filter(|(_, segment)| !segment.open && segment.residence == Residence::Memory);
    let oldest = leaves.min_by_key(|(_, segment)| segment.used);
    oldest.map(|(key, segment)| (key, segment.len as u64))
}

/// Marks the segments that hold the first records of queues.
fn heads(store: &Store, memory: &Memory) -> Vec<bool> {
    let mut heads = vec![false; store.segments.key_end()];
    let records = HEAD_RECORDS / store.queue_count().max(1);
    let octets_max = HEAD_OCTETS.min(memory.segment_len as u64);
    for (_, queue) in store.queues() {
        let mut octets = 0;
        let head = queue.iter_from(RecordId(0));
        for (_, slot) in head.take(records.clamp(1, HEAD_RECORDS_MAX)) {
            heads[slot.home.segment as usize] = true;
            if let Some(side) = store.side(slot) {
                heads[side.meta.at.segment as usize] = true;
            }
            octets += u64::from(slot.len);
            if octets >= octets_max {
                break;
            }
        }
    }
    heads
}
