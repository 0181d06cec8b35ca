//! Where frames lie: segments of memory, read into directly and recycled last-in-first-out. What is
//! not needed at hand may lie in a spill store meanwhile; `spill` decides what and when.

use std::collections::VecDeque;

use vere_ports::spill::SpillSlot;
use vere_ports::spool_log::LogStretch;

pub(super) use super::memory::Memory;

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

/// Where the octets of a segment are that is not only in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// In the spill store, as they were written out.
    Spill(SpillSlot),
    /// In the log, as they were found at the start.
    Log(LogStretch),
}

/// Where the octets of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    /// In memory and nowhere else.
    Memory,
    /// With the spill store, which writes them there.
    Leaving,
    /// On disk.
    Spilled(Backing),
    /// On disk, and being read.
    Returning(Backing),
    /// In memory and on disk.
    Copied(Backing),
}

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
    /// Answers on their way out that point here.
    pub(super) pins: u32,
    /// The log segment that holds the first of it; 0 when none does.
    pub(super) log_segment: u64,
    /// Whether it is still being filled, and stays even when nothing lives in it.
    pub(super) open: bool,
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

    /// Whether nothing lives in it and nobody is sent anything of it.
    pub(super) const fn is_done_with(&self) -> bool {
        self.live == 0 && self.pins == 0
    }
}

/// The segments of one group.
#[derive(Debug, Default)]
pub(super) struct Segments {
    slots: Vec<Option<Segment>>,
    /// Segments that are not in memory.
    away: usize,
    /// Those to be read back, the most urgent first.
    pub(super) wanted: VecDeque<SegmentKey>,
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
        };
        self.enter(segment)
    }

    fn enter(&mut self, segment: Segment) -> SegmentKey {
        if let Some(key) = self.vacant.pop() {
            self.slots[key as usize] = Some(segment);
            return key;
        }
        self.slots.push(Some(segment));
        self.slots.len() as SegmentKey - 1
    }

    /// A segment that lies in the log. It is open, for more that follows there.
    pub(super) fn add_logged(&mut self, memory: &mut Memory, stretch: LogStretch) -> SegmentKey {
        self.away += 1;
        self.enter(Segment {
            len: memory.segment_len.max(stretch.octets as usize),
            octets: Vec::new(),
            residence: Residence::Spilled(Backing::Log(stretch)),
            crc: 0,
            wanted: false,
            used: memory.next_use(),
            fill: stretch.octets as usize,
            live: 0,
            live_octets: 0,
            pins: 0,
            log_segment: stretch.segment,
            open: true,
        })
    }

    /// What lies in the log is this much longer, when that fits in. Gives where that begins.
    pub(super) fn extend_logged(&mut self, key: SegmentKey, octets: u32) -> Option<Place> {
        let segment = self.at_mut(key);
        let Residence::Spilled(Backing::Log(stretch)) = &mut segment.residence else {
            return None;
        };
        let (offset, end) = (stretch.octets, stretch.octets.checked_add(octets)?);
        if end as usize > segment.len {
            return None;
        }
        stretch.octets = end;
        segment.fill = end as usize;
        Some(Place {
            segment: key,
            offset,
        })
    }

    /// The octets of a segment are in memory and no longer left to the log.
    pub(super) fn take_from_log(&mut self, key: SegmentKey) {
        let segment = self.at_mut(key);
        if let Residence::Copied(Backing::Log(_)) = segment.residence {
            segment.residence = Residence::Memory;
        }
    }

    /// Nothing more goes into this segment.
    pub(super) fn close(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).open = false;
        self.release(memory, key);
    }

    /// Gives a segment's memory and slot back when nothing needs it any more. One that the spill store
    /// works on stays until that is done.
    fn release(&mut self, memory: &mut Memory, key: SegmentKey) {
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

    /// Takes a segment's octets out, to be written; what counts of them, and their checksum, are noted.
    pub(super) fn depart(&mut self, key: SegmentKey) -> (Vec<u8>, usize) {
        self.away += 1;
        let segment = self.at_mut(key);
        segment.residence = Residence::Leaving;
        segment.crc = crc32fast::hash(&segment.octets[..segment.fill]);
        (std::mem::take(&mut segment.octets), segment.fill)
    }

    /// Was written out, or not: then it is in memory again.
    pub(super) fn departed(
        &mut self,
        memory: &mut Memory,
        key: SegmentKey,
        octets: Vec<u8>,
        slot: Option<SpillSlot>,
    ) {
        let segment = self.at_mut(key);
        let wanted = std::mem::take(&mut segment.wanted);
        match slot {
            Some(slot) if !wanted => {
                segment.residence = Residence::Spilled(Backing::Spill(slot));
                memory.give(octets);
            }
            slot => {
                let copied = |slot| Residence::Copied(Backing::Spill(slot));
                segment.residence = slot.map_or(Residence::Memory, copied);
                segment.used = memory.next_use();
                segment.octets = octets;
                self.away -= 1;
            }
        }
        memory.arrived = true;
        self.release(memory, key);
    }

    /// The memory of a segment that lies on disk as well is given back.
    pub(super) fn evict(&mut self, memory: &mut Memory, key: SegmentKey) {
        let segment = self.at_mut(key);
        if let Residence::Copied(backing) = segment.residence {
            segment.residence = Residence::Spilled(backing);
            memory.give(std::mem::take(&mut segment.octets));
            self.away += 1;
        }
    }

    /// Was read back, as the system says. False when these are not the octets that were written out,
    /// and something lives there; then it stays where it is. The log vouches for its own.
    pub(super) fn returned(
        &mut self,
        memory: &mut Memory,
        key: SegmentKey,
        octets: Vec<u8>,
        read: bool,
    ) -> bool {
        let segment = self.at_mut(key);
        segment.wanted = false;
        let found = octets.get(..segment.fill).filter(|_| read);
        let vouched = segment.is_in_log();
        let sound = found.is_some_and(|octets| vouched || crc32fast::hash(octets) == segment.crc);
        // Where nothing lives any more the log may hold something else by now.
        let missed = !sound && !segment.is_done_with();
        if let Residence::Returning(backing) = segment.residence {
            if sound {
                segment.residence = Residence::Copied(backing);
                segment.used = memory.next_use();
                segment.octets = octets;
                self.away -= 1;
            } else {
                segment.residence = Residence::Spilled(backing);
                memory.give(octets);
            }
        }
        memory.arrived = true;
        self.release(memory, key);
        !missed
    }

    /// Gives memory and place of a segment that is to be read back.
    pub(super) fn recall(
        &mut self,
        memory: &mut Memory,
        key: SegmentKey,
    ) -> Option<(Backing, Vec<u8>)> {
        let segment = self.at_mut(key);
        let Residence::Spilled(backing) = segment.residence else {
            return None;
        };
        segment.residence = Residence::Returning(backing);
        Some((backing, memory.take(segment.len)))
    }

    /// Asks for a segment that is not in memory. `urgent`: before all that others look forward to.
    pub(super) fn want(&mut self, key: SegmentKey, urgent: bool) {
        let segment = self.at_mut(key);
        let queued = std::mem::replace(&mut segment.wanted, true);
        if !matches!(segment.residence, Residence::Spilled(_)) {
            return;
        }
        if urgent && self.wanted.front() != Some(&key) {
            self.wanted.push_front(key);
        } else if !queued {
            self.wanted.push_back(key);
        }
    }

    /// The segment to be read back next; its memory is yet to be given.
    pub(super) fn next_wanted(&mut self) -> Option<SegmentKey> {
        while let Some(key) = self.wanted.front().copied() {
            let segment = self.slots[key as usize].as_ref();
            if segment.is_some_and(|segment| {
                segment.wanted && matches!(segment.residence, Residence::Spilled(_))
            }) {
                return Some(key);
            }
            self.wanted.pop_front();
        }
        None
    }

    /// Whether some segment is not in memory.
    pub(super) const fn is_any_away(&self) -> bool {
        self.away > 0
    }

    /// Octets of frames that are not in memory.
    pub(super) fn spilled(&self) -> u64 {
        let segments = self.slots.iter().flatten();
        let away = segments.filter(|segment| !segment.is_resident());
        away.map(|segment| segment.fill as u64).sum()
    }

    pub(super) fn is_resident(&self, key: SegmentKey) -> bool {
        self.away == 0 || self.at(key).is_resident()
    }

    /// Something of it was given out.
    pub(super) fn note_use(&mut self, memory: &mut Memory, key: SegmentKey) {
        self.at_mut(key).used = memory.next_use();
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
        self.live_octets += octets;
    }

    /// One less; with the last one the segment is given back.
    #[inline]
    pub(super) fn forget(&mut self, memory: &mut Memory, key: SegmentKey, octets: u64) {
        self.live_octets -= octets;
        let segment = self.at_mut(key);
        segment.live -= 1;
        segment.live_octets -= octets;
        if segment.live == 0 && !segment.open {
            self.release(memory, key);
        }
    }
}
