//! Answers to reads. An unchanged record is sent in place, and adjacent records as one range; only
//! uncommon records get a new frame.

use vere_spoolwire::{
    Answer, BlockHead, CHECKSUM_LEN, FRAME_MIN, HEADER_LEN, Op, QueueId, QueueStat, RecordId,
    Request, Seq, TARGET_LEN,
};

use super::access::Sight;
use super::memory::Memory;
use super::output::Output;
use super::place::{Piece, SegmentKey};
use super::queue::Slot;
use super::store::{RECORD_OVERHEAD, Store};

/// Approximate maximum length of a QUEUE_LIST, in octets.
const QUEUE_LIST_MAX: usize = 256 << 10;

/// Octets of a frame before the metadata.
const BEFORE_META: usize = HEADER_LEN + TARGET_LEN;

/// Number of segments of a queue to read ahead.
const LOOK_AHEAD: u32 = 3;
/// Maximum number of segments to read ahead for consecutive blocks: a disk is faster with several
/// reads at once.
const LOOK_AHEAD_MAX: u32 = 16;
/// Number of records probed per segment to read ahead.
const LOOKS: u32 = 4;

/// Writes a BLOCK from a record on: up to `limits.0` records and about `limits.1` octets of frames.
/// The block ends before a record that is not in memory. If that is the first record, writes
/// nothing and returns false.
pub(super) fn block(
    store: &mut Store,
    memory: &mut Memory,
    seq: Seq,
    from: (QueueId, RecordId),
    limits: (u32, u32),
    output: &mut Output,
) -> bool {
    let (id, first) = from;
    let mut head = BlockHead {
        queue: id,
        records: 0,
        next: first,
        octets: 0,
        end: true,
        known: false,
    };
    let mut found = Vec::new();
    let mut missing = None;
    if let Some(queue) = store.queue(id) {
        head.known = true;
        for (record, slot) in queue.iter_from(first) {
            let len = u64::from(slot.len) + RECORD_OVERHEAD;
            let over = head.octets + len > u64::from(limits.1);
            if head.records >= limits.0.max(1) || (over && head.records > 0) {
                head.end = false;
                break;
            }
            missing = store.missing(slot);
            if missing.is_some() {
                head.end = false;
                break;
            }
            head.records += 1;
            head.octets += len;
            head.next = record.next();
            found.push((record, slot));
        }
    }
    if let Some(keys) = missing {
        for key in keys {
            store.segments.want(key, true);
        }
    }
    if missing.is_some() && found.is_empty() {
        let ahead = ahead(store, memory, from);
        look_ahead(store, memory, from, ahead);
        return false;
    }
    output.write(|out| Answer::Block { seq, head }.encode(out));
    for (record, slot) in found {
        if store.side(slot).is_some() {
            made_record(store, id, record, slot, output);
        } else {
            let len = slot.len as usize + RECORD_OVERHEAD as usize;
            output.range(&mut store.segments, slot.home.piece(0, len));
        }
        store.segments.note_use(memory, slot.home.segment);
    }
    let ahead = ahead(store, memory, from);
    store.read_through = (id, head.next);
    look_ahead(store, memory, store.read_through, ahead);
    true
}

/// Number of segments to read ahead of a block that begins at `from`.
fn ahead(store: &Store, memory: &Memory, from: (QueueId, RecordId)) -> u32 {
    if store.read_through == from {
        memory.ahead_max().clamp(LOOK_AHEAD, LOOK_AHEAD_MAX)
    } else {
        LOOK_AHEAD
    }
}

/// Returns the segments of the first record that a request reads.
pub(super) fn segments(store: &Store, request: Request) -> Option<[SegmentKey; 2]> {
    let Request::Fetch { queue, from, .. } = request else {
        return None;
    };
    let (_, slot) = store.queue(queue)?.iter_from(from).next()?;
    let home = slot.home.segment;
    let meta = store.side(slot).map_or(home, |side| side.meta.at.segment);
    Some([home, meta])
}

/// Requests the next segments of a queue, so that consecutive reads do not wait.
fn look_ahead(store: &mut Store, memory: &mut Memory, from: (QueueId, RecordId), segments: u32) {
    let (id, from) = from;
    if !store.segments.is_any_away() {
        return;
    }
    let Some(queue) = store.queue(id) else { return };
    let record = queue.octets / queue.length.max(1) + RECORD_OVERHEAD;
    let step = (memory.segment_len as u64 / record / u64::from(LOOKS)).max(1);
    let at = |look: u32| RecordId(from.0.saturating_add(u64::from(look) * step));
    let slots = (0..segments * LOOKS).filter_map(|look| queue.slot(at(look)));
    for slot in slots.collect::<Vec<_>>() {
        let side = store.side(slot).map(|side| side.meta.at.segment);
        for key in [Some(slot.home.segment), side].into_iter().flatten() {
            if store.segments.is_resident(key) {
                store.segments.note_use(memory, key);
            } else {
                store.segments.want(key, false);
            }
        }
    }
}

impl Store {
    /// Returns the segments of a record that are not in memory, if any.
    fn missing(&self, slot: Slot) -> Option<[SegmentKey; 2]> {
        if !self.segments.is_any_away() {
            return None;
        }
        let home = slot.home.segment;
        let meta = self.side(slot).map_or(home, |side| side.meta.at.segment);
        let away = |key: &SegmentKey| !self.segments.is_resident(*key);
        match (away(&home), away(&meta)) {
            (false, false) => None,
            (true, false) => Some([home, home]),
            (false, true) => Some([meta, meta]),
            (true, true) => Some([home, meta]),
        }
    }
}

/// Writes a PUT frame for a record with separate parts.
fn made_record(store: &mut Store, queue: QueueId, id: RecordId, slot: Slot, output: &mut Output) {
    let (meta, body) = (store.meta(slot), store.body(slot));
    let head = record_head(queue, id, meta, body);
    let mut crc = vere_checksum::Crc32c::default();
    crc.update(&head);
    crc.update(store.segments.octets(meta));
    crc.update(store.segments.octets(body));
    output.write(|out| {
        out.extend_from_slice(&head);
        out.extend_from_slice(store.segments.octets(meta));
    });
    output.range(&mut store.segments, body);
    output.write(|out| out.extend_from_slice(&crc.finish().to_le_bytes()));
}

fn record_head(queue: QueueId, id: RecordId, meta: Piece, body: Piece) -> [u8; BEFORE_META] {
    let len = (BEFORE_META + CHECKSUM_LEN) as u32 + meta.len + body.len;
    let mut head = [0; BEFORE_META];
    head[0..4].copy_from_slice(&len.to_le_bytes());
    head[4] = Op::Put.code();
    head[16..20].copy_from_slice(&queue.0.to_le_bytes());
    head[20..24].copy_from_slice(&meta.len.to_le_bytes());
    head[24..32].copy_from_slice(&id.0.to_le_bytes());
    head
}

/// Writes a QUEUE_LIST of up to `count` queues from number `from` on, limited to queues that the
/// account may read.
pub(super) fn queues(
    store: &Store,
    sight: Sight<'_>,
    seq: Seq,
    (from, count): (QueueId, u32),
    output: &mut Output,
) {
    let mut queues = Vec::new();
    let (mut octets, mut end) = (FRAME_MIN, true);
    let seen = store.queues().filter(|(_, queue)| sight.sees(queue));
    for (id, queue) in seen.filter(|(id, _)| *id >= from) {
        octets += QueueStat::ENTRY_LEN + queue.name.len() + queue.readers.get().octets().len();
        if queues.len() >= count.max(1) as usize || octets > QUEUE_LIST_MAX {
            end = false;
            break;
        }
        queues.push(queue.stat(id));
    }
    output.write(|out| Answer::QueueList { seq, queues, end }.encode(out));
}
