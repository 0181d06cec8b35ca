//! Where frames lie: segments of memory, read into directly and recycled last-in-first-out. What is
//! not needed at hand may lie on disk meanwhile: `residence` says where, `spill` decides what and when.

use std::collections::{BTreeSet, VecDeque};

use super::memory::Memory;
use super::place::{Backing, Piece, Residence, SegmentKey};

/// A segment of which more lives, in percent of what was put in, is never compacted.
pub(super) const LIVE_PERCENT_MAX: u64 = 85;

/// One segment.
#[derive(Debug)]
pub(super) struct Segment {
    /// All of it, when it is in memory; what counts ends at `fill`.
    pub(super) octets: Vec<u8>,
    /// Octets of memory it takes when it is there.
    pub(super) len: usize,
    pub(super) residence: Residence,
    /// CRC-32 of what counts, as it was written out. Not the polynomial of the frames in it: whole frames
    /// one after the other have one CRC of that, whatever they hold.
    pub(super) crc: u32,
    /// Whether somebody waits for it.
    pub(super) wanted: bool,
    /// When it was begun or used last, compared to others.
    pub(super) used: u64,
    /// End of what was put in.
    pub(super) fill: usize,
    /// Bodies and metadata of living records that lie here.
    pub(super) live: u32,
    /// Their octets.
    pub(super) live_octets: u64,
    /// Answers on their way out that point here, and what the log has yet to be given of it.
    pub(super) pins: u32,
    /// The log segment that holds the first of it; 0 when none does.
    pub(super) log_segment: u64,
    /// Whether it is still being filled, and stays even when nothing lives in it.
    pub(super) open: bool,
    /// As what it is among [`Segments::thin`], if it is.
    pub(super) thin: Option<u8>,
    /// With fewer octets that live it is something else there.
    pub(super) thins_below: u64,
}

impl Segment {
    pub(super) const fn is_resident(&self) -> bool {
        matches!(self.residence, Residence::Memory | Residence::Copied(_))
    }

    /// Whether its octets are left to the log.
    pub(super) const fn is_in_log(&self) -> bool {
        matches!(
            self.residence,
            Residence::Spilled(Backing::Log(_))
                | Residence::Returning(Backing::Log(_))
                | Residence::Copied(Backing::Log(_))
        )
    }

    /// How much of it lives, in percent, if compaction may gain something by it: it is closed, in memory, and
    /// little of it lives, or little was put in.
    pub(super) fn thinness(&self) -> Option<u8> {
        if self.open || self.live == 0 || !self.is_resident() {
            return None;
        }
        let percent = self.live_octets * 100 / self.worth();
        (percent <= LIVE_PERCENT_MAX).then_some(percent as u8)
    }

    /// The octets of which those that live are a part. What was left free because the next record did not fit
    /// in would be left free again, so it counts only where that is half of all.
    fn worth(&self) -> u64 {
        let half_empty = self.fill <= self.len / 2;
        (if half_empty { self.len } else { self.fill }).max(1) as u64
    }

    /// Below how many octets that live it is thinner than this.
    fn below(&self, thin: Option<u8>) -> u64 {
        if self.open || !self.is_resident() {
            return 0;
        }
        let percent = thin.map_or(LIVE_PERCENT_MAX + 1, u64::from);
        (percent * self.worth()).div_ceil(100)
    }

    /// Whether nothing lives in it and nobody is given anything of it.
    pub(super) const fn is_done_with(&self) -> bool {
        self.live == 0 && self.pins == 0
    }

    /// Makes an open one longer, if it is not as long as that.
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
    /// Segments that are not in memory.
    pub(super) away: usize,
    /// Those to be read back, the most urgent first.
    pub(super) wanted: VecDeque<SegmentKey>,
    /// Those in memory that lie on disk as well.
    pub(super) copies: BTreeSet<SegmentKey>,
    /// Closed ones in memory of which so little lives that they may be worth compacting, by how much: the one
    /// worth most is asked for with each new segment.
    thin: BTreeSet<(u8, SegmentKey)>,
    /// Octets of all that lives, a shared body counted once.
    live_octets: u64,
    vacant: Vec<SegmentKey>,
}

impl Segments {
    /// A new segment of at least `len` octets.
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

    /// Nothing more goes into this segment.
    pub(super) fn close(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).open = false;
        self.note_thin(key);
        self.release(memory, key);
    }

    /// Gives a segment's memory and slot back when nothing needs it any more. One that the spill store
    /// works on stays until that is done.
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

    /// Something of it was given out.
    pub(super) fn note_use(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).used = memory.next_use();
    }

    /// Something points to this segment: an answer on its way out, or what goes into the log.
    pub(super) fn pin(&mut self, key: SegmentKey) {
        self.at_mut(key).pins += 1;
    }

    /// That is out.
    pub(super) fn unpin(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).pins -= 1;
        self.release(memory, key);
    }

    /// The segment of a key that was given out and not released.
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

    /// The segment of a key that may have been released.
    pub(super) fn find(&self, key: SegmentKey) -> Option<&Segment> {
        self.slots.get(key as usize)?.as_ref()
    }

    /// Above every key.
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

    /// Puts a segment among those that are thin, at its place there, or takes it out.
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

    /// Those that are thin, and how thin.
    #[cfg(test)]
    pub(super) fn thin(&self) -> impl Iterator<Item = (SegmentKey, u8)> {
        let mut thin: Vec<_> = self.thin.iter().map(|(thin, key)| (*key, *thin)).collect();
        thin.sort_unstable();
        thin.into_iter()
    }

    /// The segment by which compaction gains most, if at most so many percent of it live.
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

    /// No log holds any of them any more.
    pub(super) fn forget_log(&mut self) {
        let segments = self.slots.iter_mut().flatten();
        segments.for_each(|segment| segment.log_segment = 0);
    }

    /// Nothing lives in any segment any more.
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

    /// One more body or metadata lives in this segment.
    #[inline]
    pub(super) fn retain(&mut self, key: SegmentKey, octets: u64) {
        let segment = self.at_mut(key);
        segment.live += 1;
        segment.live_octets += octets;
        // What is moved lives on where it lies.
        if !segment.open {
            self.note_thin(key);
        }
        self.live_octets += octets;
    }

    /// One less; with the last one the segment is given back.
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
