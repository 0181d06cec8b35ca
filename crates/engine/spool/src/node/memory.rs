//! How much memory there is, and who may have more.

use vere_ports::spill::SpillSlot;

use super::config::{NodeConfig, SEGMENT_LEN_MIN};

/// Octets of index per record, for the budget, beside its place in its queue.
const RECORD_COST: u64 = 8;
/// The same for a record whose parts lie apart; room for them is kept for others.
const SIDE_COST: u64 = 48;

/// What [`Memory::fill`] is of a node that takes nothing new.
pub(super) const FULL: u64 = 1_000;

/// Segments that may stay in memory after they were read back, however short it is: at least these,
/// and a sixteenth of all memory.
const COPIES: u64 = 6;

/// The node's memory: what its segments may take, and those waiting for use.
#[derive(Debug)]
pub(super) struct Memory {
    /// Octets of a segment. A longer frame gets one of its own length.
    pub(super) segment_len: usize,
    free: Vec<Vec<u8>>,
    /// A segment was taken and none is left for the next one; until one is given back, or was looked for.
    bare: bool,
    used: u64,
    max: u64,
    /// Kept for ending and replacing records: an eighth, and no more than 64 segments.
    reserve: u64,
    scarce: u64,
    /// What may be used by segments that lie on disk as well.
    pub(super) copies_max: u64,
    /// Records of all groups.
    pub(super) records: u64,
    /// Places for records whose parts lie apart, of all groups.
    pub(super) sides: u64,
    /// Octets of all queues: their names, and places for records in them, those that stand empty too.
    pub(super) queues: u64,
    /// Octets in the spill store, and those that there is room for beside them.
    pub(super) spilled: u64,
    pub(super) spill_room: u64,
    /// Whether memory is being written out: who finds none waits instead of being refused.
    pub(super) relief: bool,
    /// Slots of the spill store that nothing needs any more.
    pub(super) dropped: Vec<SpillSlot>,
    /// Whether something came back from the spill store, or will not: who waits should look.
    pub(super) arrived: bool,
    /// What was used last has the highest number.
    uses: u64,
}

impl Memory {
    pub(super) fn new(config: &NodeConfig) -> Self {
        let segment_len = config.segment_len.max(SEGMENT_LEN_MIN);
        let max = config.memory_max.max(16 * segment_len as u64);
        Self {
            segment_len,
            free: Vec::new(),
            bare: false,
            used: 0,
            max,
            reserve: (max / 8).min(64 * segment_len as u64),
            scarce: config.compact_above.unwrap_or(max / 2),
            copies_max: (max / 16).max(COPIES * segment_len as u64),
            records: 0,
            sides: 0,
            queues: 0,
            spilled: 0,
            spill_room: 0,
            relief: false,
            dropped: Vec::new(),
            arrived: false,
            uses: 0,
        }
    }

    /// Octets of segments and index.
    pub(super) const fn used(&self) -> u64 {
        self.used + self.index()
    }

    /// Octets of the index, which stays in memory whatever is written out.
    const fn index(&self) -> u64 {
        self.records * RECORD_COST + self.sides * SIDE_COST + self.queues
    }

    /// How much of what may be held, here and in the spill store, is: in thousandths. At 1,000 new records
    /// are refused.
    pub(super) fn fill(&self) -> u64 {
        let share = |used: u64, max: u64| used.saturating_mul(FULL) / max.max(1);
        let memory = self.max - self.reserve;
        let all = memory
            .saturating_add(self.spilled)
            .saturating_add(self.spill_room);
        share(self.used().saturating_add(self.spilled), all)
            .max(share(self.index(), memory))
            .min(FULL)
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// Whether so many more octets would reach into what is reserved for ending records. While
    /// memory is being written out that may be touched: whoever reads stops before.
    pub(super) const fn is_full(&self, more: u64) -> bool {
        let reserve = if self.relief { 0 } else { self.reserve };
        self.used() + more > self.max - reserve
    }

    /// Whether whoever wants so many octets should wait: there will be room.
    pub(super) const fn should_wait(&self, more: u64) -> bool {
        self.relief && self.used() + more > self.max - self.reserve
    }

    /// The most that may be used when so many octets are to come.
    pub(super) const fn limit_for(&self, more: u64) -> u64 {
        (self.max - self.reserve).saturating_sub(more)
    }

    /// Whether so many more octets fit in at all.
    pub(super) const fn has_room(&self, more: u64) -> bool {
        self.used() + more <= self.max
    }

    /// How many segments may be read back before they are asked for: what half of the copies are, so
    /// that those are not pushed out which are being read.
    pub(super) fn ahead_max(&self) -> u32 {
        let ahead = self.copies_max / 2 / self.segment_len as u64;
        u32::try_from(ahead).unwrap_or(u32::MAX)
    }

    /// A number above all before.
    pub(super) const fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Whether even what is reserved is gone, but for the segment that is read into.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.used() + self.segment_len as u64 > self.max
    }

    /// Whether a segment in which next to nothing lives is worth more than fresh memory.
    pub(super) const fn is_bare(&self) -> bool {
        self.bare
    }

    /// Such a one was looked for.
    pub(super) const fn looked_for_spare(&mut self) {
        self.bare = false;
    }

    /// Whether it is time to look for half-empty segments.
    pub(super) const fn is_scarce(&self) -> bool {
        self.used() > self.scarce
    }

    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let len = len.max(self.segment_len);
        self.used += len as u64;
        let recycled = if len == self.segment_len {
            let recycled = self.free.pop();
            self.bare = self.free.is_empty();
            recycled
        } else {
            None
        };
        recycled.unwrap_or_else(|| vec![0; len])
    }

    /// Makes octets that were taken more.
    pub(super) fn grow(&mut self, octets: &mut Vec<u8>, len: usize) {
        self.used += (len - octets.len()) as u64;
        octets.reserve_exact(len - octets.len());
        octets.resize(len, 0);
    }

    pub(super) fn give(&mut self, octets: Vec<u8>) {
        self.used -= octets.len() as u64;
        // One kept beyond need spares the page faults of the next burst; more than the budget never.
        let kept = (self.free.len() as u64 + 1) * self.segment_len as u64;
        if octets.len() == self.segment_len && self.used + kept <= self.max {
            self.free.push(octets);
            self.bare = false;
        }
    }
}
