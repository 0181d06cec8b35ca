//! Memory budget of the node.

use vere_ports::spill::SpillSlot;

use super::config::{NodeConfig, SEGMENT_LEN_MIN};

/// Octets of index per record, for the budget, in addition to its slot in the queue.
const RECORD_COST: u64 = 8;
/// Octets of index for a record with a `Side`; vacant sides keep their memory for later records.
const SIDE_COST: u64 = 48;

/// Value of [`Memory::fill`] for a node that accepts no new records.
pub(super) const FULL: u64 = 1_000;

/// Minimum number of segments that may stay in memory after reading back, however scarce memory is;
/// a sixteenth of all memory if that is more.
const COPIES: u64 = 6;

/// The node's memory: budget for segments, and free segments.
#[derive(Debug)]
pub(super) struct Memory {
    /// Length of a segment, in octets. A longer frame gets a separate segment length.
    pub(super) segment_len: usize,
    free: Vec<Vec<u8>>,
    /// The last free segment was taken. Reset when a segment is returned or compaction has
    /// searched.
    bare: bool,
    used: u64,
    max: u64,
    /// Octets reserved for ending and replacing records: an eighth of the memory, at most 64
    /// segments.
    reserve: u64,
    scarce: u64,
    /// Maximum of octets for segments that are on disk too.
    pub(super) copies_max: u64,
    /// Records of all groups.
    pub(super) records: u64,
    /// Sides of all groups, for records with separate parts.
    pub(super) sides: u64,
    /// Octets of all queues: names and slots, including empty slots.
    pub(super) queues: u64,
    /// Octets in the spill store, and the space left in it.
    pub(super) spilled: u64,
    pub(super) spill_room: u64,
    /// Whether segments are being written out: a read without memory then waits instead of being
    /// refused.
    pub(super) relief: bool,
    /// Slots of the spill store that are no longer needed.
    pub(super) dropped: Vec<SpillSlot>,
    /// Whether a segment was read back or cannot be: waiting requests should be tried again.
    pub(super) arrived: bool,
    /// Counter of uses; the latest use has the highest number.
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

    /// Octets of the index, which always stays in memory.
    const fn index(&self) -> u64 {
        self.records * RECORD_COST + self.sides * SIDE_COST + self.queues
    }

    /// Used share of memory and spill store together, in thousandths. At 1,000 the node refuses new
    /// records.
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

    /// Whether `more` octets would reach into the reserve for ending records. While segments are
    /// being written out, mutations may use the reserve: reading stops before it is used up.
    pub(super) const fn is_full(&self, more: u64) -> bool {
        let reserve = if self.relief { 0 } else { self.reserve };
        self.used() + more > self.max - reserve
    }

    /// Whether a read of `more` octets should wait, because memory is being freed.
    pub(super) const fn should_wait(&self, more: u64) -> bool {
        self.relief && self.used() + more > self.max - self.reserve
    }

    /// Maximum of used octets that leaves space for `more`.
    pub(super) const fn limit_for(&self, more: u64) -> u64 {
        (self.max - self.reserve).saturating_sub(more)
    }

    /// Whether memory, including the reserve, has space for `more` octets.
    pub(super) const fn has_room(&self, more: u64) -> bool {
        self.used() + more <= self.max
    }

    /// Number of segments that may be read ahead: half of the copies, so that reading ahead does
    /// not evict segments in use.
    pub(super) fn ahead_max(&self) -> u32 {
        let ahead = self.copies_max / 2 / self.segment_len as u64;
        u32::try_from(ahead).unwrap_or(u32::MAX)
    }

    /// Returns a number above all earlier ones.
    pub(super) const fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Whether even the reserve is used up, except for the owner's input segment.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.used() + self.segment_len as u64 > self.max
    }

    /// Whether a nearly dead segment is worth more than fresh memory.
    pub(super) const fn is_bare(&self) -> bool {
        self.bare
    }

    /// Records that compaction has searched for a nearly dead segment.
    pub(super) const fn looked_for_spare(&mut self) {
        self.bare = false;
    }

    /// Whether compaction should look for half-empty segments.
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

    /// Extends the octets of a segment to `len`.
    pub(super) fn grow(&mut self, octets: &mut Vec<u8>, len: usize) {
        self.used += (len - octets.len()) as u64;
        octets.reserve_exact(len - octets.len());
        octets.resize(len, 0);
    }

    pub(super) fn give(&mut self, octets: Vec<u8>) {
        self.used -= octets.len() as u64;
        // Free segments spare the page faults of the next burst; together with used ones they stay
        // within the budget.
        let kept = (self.free.len() as u64 + 1) * self.segment_len as u64;
        if octets.len() == self.segment_len && self.used + kept <= self.max {
            self.free.push(octets);
            self.bare = false;
        }
    }
}
