//! Segments: memory that receives the frames directly, reused last-in-first-out. Cold segments may
//! lie on disk: `residence` knows their place, `spill` decides which segments go and when.

use std::collections::{BTreeSet, VecDeque};

use super::memory::Memory;
use super::place::{Backing, Piece, Residence, SegmentKey};

/// Living share, in percent, above which compaction never rewrites a segment.
pub(super) const LIVE_PERCENT_MAX: u64 = 85;

/// One segment.
#[derive(Debug)]
pub(super) struct Segment {
    /// The whole segment if in memory; the used octets end at `fill`.
    pub(super) octets: Vec<u8>,
    /// Length in memory, in octets.
    pub(super) len: usize,
    pub(super) residence: Residence,
    /// CRC-32 of the used octets as written out. The polynomial differs from that of the frames:
    /// with the frames' polynomial every sequence of whole frames would have an equal CRC, whatever
    /// its content.
    pub(super) crc: u32,
    /// Whether the segment is requested.
    pub(super) wanted: bool,
    /// Number of the last use or of the start, for comparison with other segments.
    pub(super) used: u64,
    /// End of the used octets.
    pub(super) fill: usize,
    /// Number of living bodies and metadata in the segment.
    pub(super) live: u32,
    /// Octets of the living bodies and metadata.
    pub(super) live_octets: u64,
    /// Number of pending answers that refer to the segment, and of frames that still have to be
    /// logged.
    pub(super) pins: u32,
    /// Log segment with the first frame of this segment; 0 for none.
    pub(super) log_segment: u64,
    /// Whether the segment is still being filled, and so stays even without living records.
    pub(super) open: bool,
    /// Key of the segment in [`Segments::thin`], if present there.
    pub(super) thin: Option<u8>,
    /// Living octets below which the key in [`Segments::thin`] changes.
    pub(super) thins_below: u64,
}

impl Segment {
    pub(super) const fn is_resident(&self) -> bool {
        matches!(self.residence, Residence::Memory | Residence::Copied(_))
    }

    /// Whether the log has a copy that serves as the segment's place on disk.
    pub(super) const fn is_in_log(&self) -> bool {
        matches!(
            self.residence,
            Residence::Spilled(Backing::Log(_))
                | Residence::Returning(Backing::Log(_))
                | Residence::Copied(Backing::Log(_))
        )
    }

    /// Returns the living share in percent if compaction may gain by the segment: closed, in
    /// memory, and with few living octets, or few octets at all.
    pub(super) fn thinness(&self) -> Option<u8> {
        if self.open || self.live == 0 || !self.is_resident() {
            return None;
        }
        let percent = self.live_octets * 100 / self.worth();
        (percent <= LIVE_PERCENT_MAX).then_some(percent as u8)
    }

    /// Octets to which the living share refers. Compaction would leave free octets at the end free
    /// again, because the next record did not fit in. So they count only if they are half of the
    /// segment.
    fn worth(&self) -> u64 {
        let half_empty = self.fill <= self.len / 2;
        (if half_empty { self.len } else { self.fill }).max(1) as u64
    }

    /// Living octets below which the segment is thinner than `thin`.
    fn below(&self, thin: Option<u8>) -> u64 {
        if self.open || !self.is_resident() {
            return 0;
        }
        let percent = thin.map_or(LIVE_PERCENT_MAX + 1, u64::from);
        (percent * self.worth()).div_ceil(100)
    }

    /// Whether no record lives in the segment and no answer or log entry refers to it.
    pub(super) const fn is_done_with(&self) -> bool {
        self.live == 0 && self.pins == 0
    }

    /// Extends an open segment to at least `len` octets.
    pub(super) fn grow(&mut self, memory: &mut Memory, len: usize) {
        if len > self.octets.len() {
            memory.grow(&mut self.octets, len);
            self.len = len;
        }
    }
}

/// The segments of one group.
#[derive(Debug, Default)]
pub(super) struct Segments {
    slots: Vec<Option<Segment>>,
    /// Number of segments that are not in memory.
    pub(super) away: usize,
    /// Segments to read back, the most urgent first.
    pub(super) wanted: VecDeque<SegmentKey>,
    /// Segments in memory that are also on disk.
    pub(super) copies: BTreeSet<SegmentKey>,
    /// Closed segments in memory with a living share low enough for compaction, ordered by this
    /// share: each new segment asks for the first.
    thin: BTreeSet<(u8, SegmentKey)>,
    /// Living octets of all segments; a shared body counts once.
    live_octets: u64,
    vacant: Vec<SegmentKey>,
}

impl Segments {
    /// Adds a segment of at least `len` octets.
    pub(super) fn add(&mut self, memory: &mut Memory, len: usize, log_segment: u64) -> SegmentKey {
        let octets = memory.take(len);
        let segment = Segment {
            len: octets.len(),
            octets,
            residence: Residence::Memory,
            crc: 0,
            wanted: false,
            used: memory.next_use(),
            fill: 0,
            live: 0,
            live_octets: 0,
            pins: 0,
            log_segment,
            open: true,
            thin: None,
            thins_below: 0,
        };
        self.enter(segment)
    }

    pub(super) fn enter(&mut self, segment: Segment) -> SegmentKey {
        if let Some(key) = self.vacant.pop() {
            self.slots[key as usize] = Some(segment);
            return key;
        }
        self.slots.push(Some(segment));
        self.slots.len() as SegmentKey - 1
    }

    /// Closes a segment: no more frames are added.
    pub(super) fn close(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).open = false;
        self.note_thin(key);
        self.release(memory, key);
    }

    /// Frees memory and key of a segment that is no longer needed. A segment in use by the spill
    /// store stays until its job is done.
    pub(super) fn release(&mut self, memory: &mut Memory, key: SegmentKey) {
        let slot = &mut self.slots[key as usize];
        let Some(segment) = slot.take_if(|segment| {
            let idle = !matches!(
                segment.residence,
                Residence::Leaving | Residence::Returning(_)
            );
            segment.live == 0 && segment.pins == 0 && !segment.open && idle
        }) else {
            return;
        };
        self.vacant.push(key);
        self.copies.remove(&key);
        if let Some(thin) = segment.thin {
            self.thin.remove(&(thin, key));
        }
        memory.arrived |= segment.wanted;
        if let Residence::Spilled(Backing::Spill(slot)) | Residence::Copied(Backing::Spill(slot)) =
            segment.residence
        {
            memory.dropped.push(slot);
        }
        if segment.is_resident() {
            memory.give(segment.octets);
        } else {
            self.away -= 1;
        }
    }

    /// Whether some segment is not in memory.
    pub(super) const fn is_any_away(&self) -> bool {
        self.away > 0
    }

    pub(super) fn is_resident(&self, key: SegmentKey) -> bool {
        self.away == 0 || self.at(key).is_resident()
    }

    /// Records a use of the segment.
    pub(super) fn note_use(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).used = memory.next_use();
    }

    /// Pins a segment, because pending output or a frame still to be logged refers to it.
    pub(super) fn pin(&mut self, key: SegmentKey) {
        self.at_mut(key).pins += 1;
    }

    /// Ends one pin of a segment.
    pub(super) fn unpin(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).pins -= 1;
        self.release(memory, key);
    }

    /// Returns the segment of a key whose segment was not released.
    #[allow(
        clippy::expect_used,
        reason = "a key is held only while its segment lives"
    )]
    #[inline]
    pub(super) fn at(&self, key: SegmentKey) -> &Segment {
        self.slots[key as usize]
            .as_ref()
            .expect("the segment lives while it is referred to")
    }

    /// Returns the segment of a key, unless it was released.
    pub(super) fn find(&self, key: SegmentKey) -> Option<&Segment> {
        self.slots.get(key as usize)?.as_ref()
    }

    /// First number above all keys.
    pub(super) const fn key_end(&self) -> usize {
        self.slots.len()
    }

    /// As [`Segments::at`].
    #[allow(
        clippy::expect_used,
        reason = "a key is held only while its segment lives"
    )]
    #[inline]
    pub(super) fn at_mut(&mut self, key: SegmentKey) -> &mut Segment {
        self.slots[key as usize]
            .as_mut()
            .expect("the segment lives while it is referred to")
    }

    /// Updates the entry of a segment in [`Segments::thin`].
    pub(super) fn note_thin(&mut self, key: SegmentKey) {
        let segment = self.at_mut(key);
        let thin = segment.thinness();
        segment.thins_below = segment.below(thin);
        let before = std::mem::replace(&mut segment.thin, thin);
        if before == thin {
            return;
        }
        if let Some(before) = before {
            self.thin.remove(&(before, key));
        }
        if let Some(thin) = thin {
            self.thin.insert((thin, key));
        }
    }

    /// Iterates over the thin segments and their living shares.
    #[cfg(test)]
    pub(super) fn thin(&self) -> impl Iterator<Item = (SegmentKey, u8)> {
        let mut thin: Vec<_> = self.thin.iter().map(|(thin, key)| (*key, *thin)).collect();
        thin.sort_unstable();
        thin.into_iter()
    }

    /// Returns the segment by which compaction gains most, if at most `most` percent of it live.
    pub(super) fn thinnest(&self, most: u64) -> Option<SegmentKey> {
        let (percent, key) = self.thin.first()?;
        (u64::from(*percent) <= most).then_some(*key)
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

    /// Records that no segment is in a log any more.
    pub(super) fn forget_log(&mut self) {
        let segments = self.slots.iter_mut().flatten();
        segments.for_each(|segment| segment.log_segment = 0);
    }

    /// Marks every segment as without living records.
    pub(super) fn forget_all(&mut self, memory: &mut Memory) {
        self.live_octets = 0;
        for key in 0..self.slots.len() {
            if let Some(segment) = &mut self.slots[key] {
                (segment.live, segment.live_octets) = (0, 0);
                self.note_thin(key as SegmentKey);
                self.release(memory, key as SegmentKey);
            }
        }
    }

    /// Counts one more living body or metadata in the segment.
    #[inline]
    pub(super) fn retain(&mut self, key: SegmentKey, octets: u64) {
        let segment = self.at_mut(key);
        segment.live += 1;
        segment.live_octets += octets;
        // Moving a record counts a new reference to an old segment.
        if !segment.open {
            self.note_thin(key);
        }
        self.live_octets += octets;
    }

    /// Counts one less living body or metadata; without any, a closed segment is released.
    #[inline]
    pub(super) fn forget(&mut self, memory: &mut Memory, key: SegmentKey, octets: u64) {
        self.live_octets -= octets;
        let segment = self.at_mut(key);
        segment.live -= 1;
        segment.live_octets -= octets;
        if segment.open {
            return;
        }
        let done = segment.live == 0;
        if done || segment.live_octets < segment.thins_below {
            self.note_thin(key);
        }
        if done {
            self.release(memory, key);
        }
    }
}
