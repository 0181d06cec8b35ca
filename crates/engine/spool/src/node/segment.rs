//! Where frames lie: segments of memory, read into directly and recycled last-in-first-out.

use super::config::{NodeConfig, SEGMENT_LEN_MIN};

/// Octets of index per record, for the budget.
const RECORD_COST: u64 = 24;

/// A segment within its group.
pub(super) type SegmentKey = u32;

/// A place in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) segment: SegmentKey,
    pub(super) offset: u32,
}

/// A stretch of octets in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) at: Place,
    pub(super) len: u32,
}

impl Place {
    pub(super) const fn piece(self, skip: usize, len: usize) -> Piece {
        Piece {
            at: Self {
                segment: self.segment,
                offset: self.offset + skip as u32,
            },
            len: len as u32,
        }
    }
}

/// The node's memory: what its segments may take, and those waiting for use.
#[derive(Debug)]
pub(super) struct Memory {
    /// Octets of a segment. A longer frame gets one of its own length.
    pub(super) segment_len: usize,
    free: Vec<Vec<u8>>,
    used: u64,
    max: u64,
    /// Kept for ending and replacing records: an eighth, and no more than 64 segments.
    reserve: u64,
    scarce: u64,
    /// Records of all groups.
    pub(super) records: u64,
}

impl Memory {
    pub(super) fn new(config: &NodeConfig) -> Self {
        let segment_len = config.segment_len.max(SEGMENT_LEN_MIN);
        let max = config.memory_max.max(16 * segment_len as u64);
        Self {
            segment_len,
            free: Vec::new(),
            used: 0,
            max,
            reserve: (max / 8).min(64 * segment_len as u64),
            scarce: config.compact_above.unwrap_or(max / 2),
            records: 0,
        }
    }

    /// Octets of segments and index.
    pub(super) const fn used(&self) -> u64 {
        self.used + self.records * RECORD_COST
    }

    pub(super) const fn max(&self) -> u64 {
        self.max
    }

    /// Whether so many more octets would reach into what is reserved for ending records.
    pub(super) const fn is_full(&self, more: u64) -> bool {
        self.used() + more > self.max - self.reserve
    }

    /// Whether it is time to look for half-empty segments.
    pub(super) const fn is_scarce(&self) -> bool {
        self.used() > self.scarce
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let len = len.max(self.segment_len);
        self.used += len as u64;
        let recycled = if len == self.segment_len {
            self.free.pop()
        } else {
            None
        };
        recycled.unwrap_or_else(|| vec![0; len])
    }

    fn give(&mut self, octets: Vec<u8>) {
        self.used -= octets.len() as u64;
        // One kept beyond need spares the page faults of the next burst; more than the budget never.
        let kept = (self.free.len() as u64 + 1) * self.segment_len as u64;
        if octets.len() == self.segment_len && self.used + kept <= self.max {
            self.free.push(octets);
        }
    }
}

/// One segment.
#[derive(Debug)]
pub(super) struct Segment {
    /// All of it; what counts ends at `fill`.
    pub(super) octets: Vec<u8>,
    /// End of what was put in.
    pub(super) fill: usize,
    /// Bodies and metadata of living records that lie here.
    pub(super) live: u32,
    /// Their octets.
    pub(super) live_octets: u64,
    /// Answers on their way out that point here.
    pub(super) pins: u32,
    /// The log segment that holds the first of it.
    pub(super) log_segment: u64,
    /// Whether it is still being filled, and stays even when nothing lives in it.
    pub(super) open: bool,
}

/// The segments of one group.
#[derive(Debug, Default)]
pub(super) struct Segments {
    slots: Vec<Option<Segment>>,
    /// Octets of all that lives, a shared body counted once.
    live_octets: u64,
    vacant: Vec<SegmentKey>,
}

impl Segments {
    /// A new segment of at least `len` octets.
    pub(super) fn add(&mut self, memory: &mut Memory, len: usize, log_segment: u64) -> SegmentKey {
        let segment = Segment {
            octets: memory.take(len),
            fill: 0,
            live: 0,
            live_octets: 0,
            pins: 0,
            log_segment,
            open: true,
        };
        if let Some(key) = self.vacant.pop() {
            self.slots[key as usize] = Some(segment);
            return key;
        }
        self.slots.push(Some(segment));
        self.slots.len() as SegmentKey - 1
    }

    /// Nothing more goes into this segment.
    pub(super) fn close(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).open = false;
        self.release(memory, key);
    }

    /// Gives a segment's memory back when nothing needs it any more.
    fn release(&mut self, memory: &mut Memory, key: SegmentKey) {
        let slot = &mut self.slots[key as usize];
        if let Some(segment) = slot.take_if(|s| s.live == 0 && s.pins == 0 && !s.open) {
            memory.give(segment.octets);
            self.vacant.push(key);
        }
    }

    /// An answer on its way out points to this segment.
    pub(super) fn pin(&mut self, key: SegmentKey) {
        self.at_mut(key).pins += 1;
    }

    /// That answer is out.
    pub(super) fn unpin(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).pins -= 1;
        self.release(memory, key);
    }

    /// The segment of a key that was given out and not released.
    #[allow(
        clippy::expect_used,
        reason = "a key is held only while its segment lives"
    )]
    pub(super) fn at(&self, key: SegmentKey) -> &Segment {
        self.slots[key as usize]
            .as_ref()
            .expect("the segment lives while it is referred to")
    }

    /// As [`Segments::at`].
    #[allow(
        clippy::expect_used,
        reason = "a key is held only while its segment lives"
    )]
    pub(super) fn at_mut(&mut self, key: SegmentKey) -> &mut Segment {
        self.slots[key as usize]
            .as_mut()
            .expect("the segment lives while it is referred to")
    }

    pub(super) fn octets(&self, piece: Piece) -> &[u8] {
        let start = piece.at.offset as usize;
        &self.at(piece.at.segment).octets[start..start + piece.len as usize]
    }

    pub(super) const fn live_octets(&self) -> u64 {
        self.live_octets
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SegmentKey, &Segment)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(key, slot)| Some((key as SegmentKey, slot.as_ref()?)))
    }

    /// One more body or metadata lives in this segment.
    pub(super) fn retain(&mut self, key: SegmentKey, octets: u64) {
        let segment = self.at_mut(key);
        segment.live += 1;
        segment.live_octets += octets;
        self.live_octets += octets;
    }

    /// One less; with the last one the segment is given back.
    pub(super) fn forget(&mut self, memory: &mut Memory, key: SegmentKey, octets: u64) {
        self.live_octets -= octets;
        let segment = self.at_mut(key);
        segment.live -= 1;
        segment.live_octets -= octets;
        if segment.live == 0 {
            self.release(memory, key);
        }
    }
}
