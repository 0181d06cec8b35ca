//! From octets to queues: the owner's frames are read into the group's segment and stay in place.
//! Only frames that need not stay (repeated and refused requests, reads) are overwritten.

use vere_spoolwire::{
    CloseReason, FLAG_KEPT, FRAME_MIN, Frame, HANDSHAKE_FRAME_MAX, HEADER_LEN, Header, Mutation,
    NodeRefusal, Plain, REFUSED_FRAME_LEN, Txn,
};

use super::block::{Done, Event, Terms, reason};
use super::cursor::{Cursor, note_refusal, refuse};
use super::journal::Urgency;
use super::memory::Memory;
use super::place::{RecordPlace, SegmentKey};
use super::segment::Segment;
use super::store::Store;
use super::unusual::{has_reserve, keep_other, other, take_over};

/// Maximum number of octets of one read.
const READ_MAX: usize = 256 << 10;
/// Free octets of a segment below which the next read starts another segment: a part of the segment
/// length, and at least the data that a peer may send along with the HELLO.
fn read_min(memory: &Memory) -> usize {
    (memory.segment_len / 128).max(HANDSHAKE_FRAME_MAX)
}

/// The segment that receives the owner's input.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) segment: Option<SegmentKey>,
    /// End of the kept frames.
    pub(super) start: usize,
    /// Start of the unprocessed octets; equals `start` except between requests.
    next: usize,
    /// Length of the frame at `next`, once its header has arrived.
    need: usize,
    discard: Option<Discard>,
    /// Whether a client waits for the sync of kept frames that are not in the log yet.
    pub(super) urgency: Urgency,
}

/// A frame for which memory has no space: its octets are skipped.
#[derive(Debug, Clone, Copy)]
struct Discard {
    left: usize,
    txn: Txn,
}

impl Tail {
    /// Whether the next read needs another segment.
    fn is_short(&self, store: &Store, memory: &Memory) -> bool {
        let Some(key) = self.segment else { return true };
        let segment = store.segments.at(key);
        let (len, room) = (segment.octets.len(), segment.octets.len() - segment.fill);
        if self.need <= HEADER_LEN {
            room < read_min(memory) || self.is_outgrown(segment, memory)
        } else if self.grows(memory) {
            self.need > len && room == 0
        } else {
            self.start + self.need > len || self.is_outgrown(segment, memory)
        }
    }

    /// Whether the segment contains only the beginning of an oversized frame. Memory for such a
    /// frame grows with the arriving octets, so an announced length alone takes no memory from
    /// other groups.
    const fn grows(&self, memory: &Memory) -> bool {
        self.start == 0 && self.next == 0 && self.need > memory.segment_len
    }

    /// Length of the segment for an oversized frame after `there` octets have arrived.
    fn grown(&self, memory: &Memory, there: usize) -> usize {
        let twice = there.saturating_mul(2).max(memory.segment_len);
        self.need.min(twice).max(there)
    }

    /// Whether an oversized segment has served its frame and no other oversized frame needs it.
    const fn is_outgrown(&self, segment: &Segment, memory: &Memory) -> bool {
        let long = segment.octets.len() > memory.segment_len;
        long && self.need <= memory.segment_len && self.next == self.start && segment.is_done_with()
    }

    /// Octets of memory that the next read will take.
    pub(super) fn wants(&self, store: &Store, memory: &Memory) -> u64 {
        if !self.is_short(store, memory) {
            return 0;
        }
        let Some(key) = self.segment else {
            return memory.segment_len as u64;
        };
        let segment = store.segments.at(key);
        let len = segment.octets.len();
        if self.grows(memory) {
            (self.grown(memory, segment.fill) - len) as u64
        } else if self.begins_again(segment, memory) && self.need <= len {
            0
        } else {
            self.grown(memory, segment.fill - self.next)
                .max(memory.segment_len) as u64
        }
    }

    /// Whether all octets before the unprocessed ones are unused, so that the segment can be reused
    /// from its start. The octets to move must not exceed the unused ones.
    const fn begins_again(&self, segment: &Segment, memory: &Memory) -> bool {
        let done = segment.is_done_with() && self.next == self.start;
        done && segment.fill - self.start <= self.start && !self.is_outgrown(segment, memory)
    }

    /// Provides space for the next read. All processed frames must be in the log by now.
    pub(super) fn make_room(&mut self, store: &mut Store, memory: &mut Memory, log_segment: u64) {
        if let Some(key) = self.segment {
            let segment = store.segments.at_mut(key);
            // The start of the segment is in the processor's cache.
            if self.begins_again(segment, memory) {
                segment.octets.copy_within(self.start..segment.fill, 0);
                (segment.fill, segment.log_segment) = (segment.fill - self.start, log_segment);
                (self.start, self.next) = (0, 0);
            }
        }
        if !self.is_short(store, memory) {
            return;
        }
        if let Some(key) = self.segment.filter(|_| self.grows(memory)) {
            let segment = store.segments.at_mut(key);
            let len = self.grown(memory, segment.fill);
            segment.grow(memory, len);
            return;
        }
        self.begin_segment(store, memory, log_segment);
    }

    /// Continues in a new segment, and moves the unprocessed octets there.
    pub(super) fn begin_segment(
        &mut self,
        store: &mut Store,
        memory: &mut Memory,
        log_segment: u64,
    ) {
        let pending = self.segment.map_or_else(Vec::new, |old| {
            let segment = store.segments.at_mut(old);
            let pending = segment.octets[self.next..segment.fill].to_vec();
            segment.fill = self.start;
            pending
        });
        let len = self.grown(memory, pending.len()).max(FRAME_MIN);
        let new = store.segments.add(memory, len, log_segment);
        let segment = store.segments.at_mut(new);
        segment.octets[..pending.len()].copy_from_slice(&pending);
        segment.fill = pending.len();
        if let Some(old) = self.segment {
            store.segments.close(memory, old);
        }
        (self.segment, self.start, self.next) = (Some(new), 0, 0);
    }

    /// Returns the buffer for the next octets, after [`Tail::make_room`].
    pub(super) fn buffer<'a>(&self, store: &'a mut Store) -> &'a mut [u8] {
        let Some(key) = self.segment else {
            return &mut [];
        };
        let segment = store.segments.at_mut(key);
        // Reserve space for the REFUSED at the end of a skipped frame.
        let spare = if self.discard.is_some() {
            REFUSED_FRAME_LEN
        } else {
            0
        };
        let end = (segment.octets.len() - spare).min(segment.fill + READ_MAX);
        &mut segment.octets[segment.fill..end]
    }

    /// Records that `count` octets were read into the buffer.
    pub(super) fn received(&mut self, store: &mut Store, count: usize) {
        if let Some(key) = self.segment {
            store.segments.at_mut(key).fill += count;
        }
    }

    /// Appends a frame from a log.
    pub(super) fn append(
        &mut self,
        store: &mut Store,
        memory: &mut Memory,
        log_segment: u64,
        frame: &[u8],
    ) -> RecordPlace {
        self.need = frame.len();
        self.make_room(store, memory, log_segment);
        let key = self.segment.unwrap_or_default();
        let segment = store.segments.at_mut(key);
        segment.grow(memory, self.start + frame.len());
        let place = RecordPlace {
            segment: key,
            offset: self.start as u32,
        };
        segment.octets[self.start..self.start + frame.len()].copy_from_slice(frame);
        self.start += frame.len();
        (segment.fill, self.next, self.need) = (self.start, self.start, 0);
        place
    }

    /// Drops the unprocessed octets of a lost connection. An oversized segment is closed too,
    /// unless its kept frames still have to be logged.
    pub(super) fn reset(&mut self, store: &mut Store, memory: &mut Memory, logged: bool) {
        (self.need, self.discard, self.next) = (0, None, self.start);
        let Some(key) = self.segment else { return };
        let segment = store.segments.at_mut(key);
        segment.fill = self.start;
        if logged && segment.octets.len() > memory.segment_len {
            store.segments.close(memory, key);
            (self.segment, self.start, self.next) = (None, 0, 0);
        }
    }

    /// Executes received mutations, up to the first request of another kind.
    ///
    /// # Errors
    ///
    /// Reason for closing the connection. Earlier mutations remain in effect.
    pub(super) fn process(
        &mut self,
        store: &mut Store,
        memory: &mut Memory,
        terms: &Terms,
        done: &mut Done,
    ) -> Result<Event, CloseReason> {
        let Some(key) = self.segment else {
            return Ok(Event::Incomplete);
        };
        self.read_over(store, key, terms, done);
        let segment = store.segments.at_mut(key);
        // The code below does not look into segments, so the octets can be taken out meanwhile.
        let mut octets = std::mem::take(&mut segment.octets);
        let mut cursor = Cursor {
            read: self.next,
            keep: self.start,
            fill: segment.fill,
        };
        self.need = 0;
        let mut result = loop {
            self.run_plain(store, memory, terms, key, &mut octets, &mut cursor);
            match self.step(store, memory, terms, done, key, &mut octets, &mut cursor) {
                Ok(None) => {}
                Ok(Some(event)) => break Ok(event),
                Err(reason) => break Err(reason),
            }
        };
        if result == Ok(Event::Incomplete) && cursor.keep != cursor.read {
            octets.copy_within(cursor.read..cursor.fill, cursor.keep);
            cursor.fill -= cursor.read - cursor.keep;
            cursor.read = cursor.keep;
        }
        let segment = store.segments.at_mut(key);
        (segment.octets, segment.fill) = (octets, cursor.fill);
        (self.start, self.next) = (cursor.keep, cursor.read);
        if self.need > memory.segment_len {
            let segment = store.segments.at(key);
            let there = if self.grows(memory) {
                segment.octets.len()
            } else {
                0
            };
            // Memory must have space for the whole rest of the frame, even if another group takes
            // memory first.
            let more = self.need.saturating_sub(there) as u64;
            if more > 0 && memory.is_full(more) && !memory.should_wait(more) {
                result = self.begin_discard(store, key).and(result);
            }
        }
        result
    }

    /// Executes consecutive PUTs and DELETEs, nearly all of the input, up to the first frame that
    /// has another kind, is incomplete, or is wrong.
    #[inline]
    fn run_plain(
        &mut self,
        store: &mut Store,
        memory: &mut Memory,
        terms: &Terms,
        key: SegmentKey,
        octets: &mut [u8],
        cursor: &mut Cursor,
    ) {
        while !store.syncing {
            let txn = store.processed.next();
            let rest = &octets[cursor.read..cursor.fill];
            let Some((plain, len)) = Plain::read(rest, terms.frame_max, txn) else {
                break;
            };
            let home = RecordPlace {
                segment: key,
                offset: cursor.keep as u32,
            };
            store.processed = txn;
            if plain.put.is_some() {
                self.urgency = Urgency::Now;
            }
            let full = terms.disk_full || memory.is_full(0);
            match store.perform_plain(memory, plain, home, full) {
                Ok(()) => cursor.keep(octets, len),
                Err(refusal) => {
                    cursor.read += len;
                    refuse(store, terms, octets, cursor, (txn, refusal));
                }
            }
        }
    }

    /// Processes one frame.
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one loop, borrowed apart"
    )]
    fn step(
        &mut self,
        store: &mut Store,
        memory: &mut Memory,
        terms: &Terms,
        done: &mut Done,
        key: SegmentKey,
        octets: &mut [u8],
        cursor: &mut Cursor,
    ) -> Result<Option<Event>, CloseReason> {
        let rest = &octets[cursor.read..cursor.fill];
        let Some(header) = Header::peek(rest, terms.frame_max).map_err(reason)? else {
            return Ok(Some(Event::Incomplete));
        };
        let Some(frame) = Frame::open(header, rest).map_err(reason)? else {
            self.need = header.len;
            return Ok(Some(Event::Incomplete));
        };
        if !header.op.is_mutation() {
            let event = other(&frame)?;
            if matches!(event, Event::Reset(_)) {
                self.urgency = Urgency::Now;
            }
            keep_other(event, store, terms, octets, cursor);
            cursor.read += header.len;
            return Ok(Some(event));
        }
        let home = RecordPlace {
            segment: key,
            offset: cursor.keep as u32,
        };
        let mutation = match Mutation::decode(&frame) {
            Ok(mutation) => mutation,
            Err(error) => {
                take_over(store, memory, terms, &frame, home, error)?;
                self.urgency = Urgency::Now;
                cursor.keep(octets, header.len);
                return Ok(None);
            }
        };
        let txn = Txn(header.number);
        if txn > store.processed.next() || txn.0 == 0 {
            return Err(CloseReason::TxnGap);
        }
        if txn <= store.processed {
            done.repeat(store, txn);
            cursor.read += header.len;
            return Ok(None);
        }
        store.processed = txn;
        self.urgency = self.urgency.max(Urgency::of(&mutation));
        let full = (terms.disk_full || memory.is_full(0)) && !has_reserve(memory, terms, &mutation);
        match store.perform(memory, &mutation, home, full) {
            Ok(()) => cursor.keep(octets, header.len),
            Err(refusal) => {
                cursor.read += header.len;
                refuse(store, terms, octets, cursor, (txn, refusal));
            }
        }
        Ok(None)
    }

    fn begin_discard(&mut self, store: &mut Store, key: SegmentKey) -> Result<(), CloseReason> {
        let segment = store.segments.at_mut(key);
        let there = &segment.octets[self.start..segment.fill];
        let Some(header) = Header::peek(there, usize::MAX).map_err(reason)? else {
            return Ok(());
        };
        let txn = Txn(header.number);
        if header.flags & FLAG_KEPT != 0 {
            // A copy has no transaction number for a refusal.
            return Err(if store.syncing {
                CloseReason::NoRoom
            } else {
                CloseReason::Malformed
            });
        }
        if !header.op.is_mutation() || txn > store.processed.next() {
            return Err(CloseReason::TxnGap);
        }
        self.discard = Some(Discard {
            left: header.len - there.len(),
            txn,
        });
        segment.fill = self.start;
        self.need = 0;
        Ok(())
    }

    /// Skips received octets of a frame without space, and refuses the frame at its end.
    fn read_over(&mut self, store: &mut Store, key: SegmentKey, terms: &Terms, done: &mut Done) {
        let Some(Discard { left, txn }) = self.discard else {
            return;
        };
        let segment = store.segments.at_mut(key);
        let part = left.min(segment.fill - self.start);
        segment
            .octets
            .copy_within(self.start + part..segment.fill, self.start);
        segment.fill -= part;
        self.discard = (part < left).then_some(Discard {
            left: left - part,
            txn,
        });
        if self.discard.is_some() {
            return;
        }
        if txn <= store.processed {
            done.repeat(store, txn);
            return;
        }
        store.processed = txn;
        self.urgency = Urgency::Now;
        store.refuse(txn, NodeRefusal::NodeFull);
        if terms.logged {
            let segment = store.segments.at_mut(key);
            let end = self.start + REFUSED_FRAME_LEN;
            segment.octets.copy_within(self.start..segment.fill, end);
            segment.fill += REFUSED_FRAME_LEN;
            note_refusal(
                &mut segment.octets,
                &mut self.start,
                txn,
                NodeRefusal::NodeFull,
            );
            self.next = self.start;
        }
    }
}
