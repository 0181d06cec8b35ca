//! Residence of a segment's octets: in memory, on disk, both, or in transit.

use vere_ports::spill::SpillSlot;
use vere_ports::spool_log::LogStretch;

use super::memory::Memory;
use super::place::{Backing, RecordPlace, Residence, SegmentKey};
use super::segment::{Segment, Segments};

impl Segments {
    /// Sets the residence of a segment.
    fn lay(&mut self, key: SegmentKey, residence: Residence) {
        let before = std::mem::replace(&mut self.at_mut(key).residence, residence);
        match (before.is_memory(), residence.is_memory()) {
            (true, false) => self.away += 1,
            (false, true) => self.away -= 1,
            _ => {}
        }
        if matches!(residence, Residence::Copied(_)) {
            self.copies.insert(key);
        } else {
            self.copies.remove(&key);
        }
        self.note_thin(key);
    }

    /// Adds a segment whose octets lie in the log. The segment stays open for adjacent entries.
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
            thin: None,
            thins_below: 0,
        })
    }

    /// Extends a segment in the log by `octets` if its length permits. Returns the place of the
    /// extension.
    pub(super) fn extend_logged(&mut self, key: SegmentKey, octets: u32) -> Option<RecordPlace> {
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
        Some(RecordPlace {
            segment: key,
            offset,
        })
    }

    /// Detaches a segment in memory from its copy in the log.
    pub(super) fn take_from_log(&mut self, key: SegmentKey) {
        if let Residence::Copied(Backing::Log(_)) = self.at(key).residence {
            self.lay(key, Residence::Memory);
        }
    }

    /// Takes a segment's octets out for writing, and notes their checksum. Returns the octets and
    /// the number of used ones.
    pub(super) fn depart(&mut self, key: SegmentKey) -> (Vec<u8>, usize) {
        self.lay(key, Residence::Leaving);
        let segment = self.at_mut(key);
        segment.crc = vere_checksum::crc32(&segment.octets[..segment.fill]);
        (std::mem::take(&mut segment.octets), segment.fill)
    }

    /// Ends the writing of a segment. Without a slot the writing failed, and the segment is in
    /// memory again.
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
                self.lay(key, Residence::Spilled(Backing::Spill(slot)));
                memory.give(octets);
            }
            slot => {
                segment.used = memory.next_use();
                segment.octets = octets;
                let copied = |slot| Residence::Copied(Backing::Spill(slot));
                self.lay(key, slot.map_or(Residence::Memory, copied));
            }
        }
        memory.arrived = true;
        self.release(memory, key);
    }

    /// Frees the memory of a segment that is also on disk.
    pub(super) fn evict(&mut self, memory: &mut Memory, key: SegmentKey) {
        if let Residence::Copied(backing) = self.at(key).residence {
            self.lay(key, Residence::Spilled(backing));
            memory.give(std::mem::take(&mut self.at_mut(key).octets));
        }
    }

    /// Ends the reading of a segment; `read`: the system reported success. Returns false if the
    /// octets differ from the written ones and a record lives in the segment, which then remains on
    /// disk. The log verifies its own octets.
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
        let sound =
            found.is_some_and(|octets| vouched || vere_checksum::crc32(octets) == segment.crc);
        // If nothing lives in the segment, the log may have other content there by now.
        let missed = !sound && !segment.is_done_with();
        if let Residence::Returning(backing) = segment.residence {
            if sound {
                segment.used = memory.next_use();
                segment.octets = octets;
                self.lay(key, Residence::Copied(backing));
            } else {
                self.lay(key, Residence::Spilled(backing));
                memory.give(octets);
            }
        }
        memory.arrived = true;
        self.release(memory, key);
        !missed
    }

    /// Starts the reading of a segment. Returns its place on disk and memory for its octets.
    pub(super) fn recall(
        &mut self,
        memory: &mut Memory,
        key: SegmentKey,
    ) -> Option<(Backing, Vec<u8>)> {
        let segment = self.at(key);
        let (Residence::Spilled(backing), len) = (segment.residence, segment.len) else {
            return None;
        };
        self.lay(key, Residence::Returning(backing));
        Some((backing, memory.take(len)))
    }

    /// Requests a segment that is not in memory. `urgent`: before all other requests.
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

    /// Returns the next segment to read back; the caller provides its memory.
    pub(super) fn next_wanted(&mut self) -> Option<SegmentKey> {
        while let Some(key) = self.wanted.front().copied() {
            let segment = self.find(key);
            if segment.is_some_and(|segment| {
                segment.wanted && matches!(segment.residence, Residence::Spilled(_))
            }) {
                return Some(key);
            }
            self.wanted.pop_front();
        }
        None
    }

    /// Octets of frames that are not in memory.
    pub(super) fn spilled(&self) -> u64 {
        let away = self.iter().filter(|(_, segment)| !segment.is_resident());
        away.map(|(_, segment)| segment.fill as u64).sum()
    }
}
