//! Outlines of log entries: the frames without the content of records, as needed by a restart.
//!
//! ```text
//! frame    0  header of the frame (16), its length that of the whole frame
//!         16  PUT, DELETE, REPLACE: target (16)
//!             MOVE: target (16) | to queue u32 | 0 u32 | to record u64
//!             BATCH: count u32 | 0 u32 | count x { header of the item (8) | as of its frame }
//!             any other: payload
//! ```
//! An outline omits metadata, bodies and checksums; their lengths follow from the remaining
//! lengths. So a restart finds the places of records, and reads a record only on request.

use vere_ports::spool_log::{LogOutliner, UnreadableEntry};
use vere_spoolwire::{
    BATCH_HEAD_LEN, Change, FLAG_NEW_META, FLAG_SAME_BODY, FRAME_MIN, Frame, HEADER_LEN, Header,
    ITEM_HEADER_LEN, META_MAX, Mutation, Op, QueueId, RecordId, TARGET_LEN, WireError,
};

/// Version of the outlines of [`OUTLINER`].
const VERSION: u32 = 1;

/// Makes and checks outlines of the entries of a node's log.
pub const OUTLINER: LogOutliner = LogOutliner {
    version: VERSION,
    outline,
    check,
};

/// A change without the octets of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// [`Change::Put`], with the lengths of metadata and body in octets.
    Put {
        queue: QueueId,
        id: RecordId,
        meta: u32,
        body: Option<u32>,
    },
    /// [`Change::Delete`].
    Delete { queue: QueueId, id: RecordId },
    /// [`Change::Replace`].
    Replace {
        queue: QueueId,
        id: RecordId,
        meta: u32,
    },
    /// [`Change::Move`].
    Move {
        queue: QueueId,
        id: RecordId,
        to: QueueId,
        to_id: RecordId,
        meta: Option<u32>,
    },
}

impl From<Change<'_>> for Shape {
    fn from(change: Change<'_>) -> Self {
        let len = |octets: &[u8]| octets.len() as u32;
        match change {
            Change::Put {
                queue,
                id,
                meta,
                body,
            } => Self::Put {
                queue,
                id,
                meta: len(meta),
                body: body.map(len),
            },
            Change::Delete { queue, id } => Self::Delete { queue, id },
            Change::Replace { queue, id, meta } => Self::Replace {
                queue,
                id,
                meta: len(meta),
            },
            Change::Move {
                queue,
                id,
                to,
                to_id,
                meta,
            } => Self::Move {
                queue,
                id,
                to,
                to_id,
                meta: meta.map(len),
            },
        }
    }
}

/// The items of a BATCH in an outline, each with the offset of the item in the frame's payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shapes<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl Iterator for Shapes<'_> {
    type Item = (usize, Shape);

    fn next(&mut self) -> Option<Self::Item> {
        let (shape, len, rest) = item(self.rest)?;
        let offset = self.offset;
        self.rest = rest;
        self.offset = offset.checked_add(len)?;
        Some((offset, shape))
    }
}

/// One frame of an outline.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sketch<'a> {
    /// A change of one record.
    Change(Shape),
    /// Several changes.
    Batch(Shapes<'a>),
    /// A complete frame without its checksum.
    Whole(Frame<'a>),
}

/// Iterator over the frames of an outline, each with a header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sketches<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Sketches<'a> {
    type Item = Result<(Header, Sketch<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let next = sketch(self.0);
        // An error makes the rest unreadable.
        self.0 = next.as_ref().map_or(&[], |(.., rest)| *rest);
        Some(next.map(|(header, sketch, _)| (header, sketch)))
    }
}

fn outline(entry: &[u8], out: &mut Vec<u8>) -> Result<(), UnreadableEntry> {
    let mut rest = entry;
    while !rest.is_empty() {
        let frame = Frame::read(rest, rest.len())
            .and_then(|frame| frame.ok_or(WireError::Checksum))
            .map_err(|error| UnreadableEntry(error.to_string()))?;
        let (octets, after) = rest.split_at(frame.header.len);
        outline_frame(&frame, octets, out).map_err(|error| UnreadableEntry(error.to_string()))?;
        rest = after;
    }
    Ok(())
}

/// Appends the outline of `frame`, whose octets are `octets`.
pub(super) fn outline_frame(
    frame: &Frame<'_>,
    octets: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    out.extend_from_slice(octets.get(..HEADER_LEN).unwrap_or_default());
    let cut = |payload: &[u8], len: usize, out: &mut Vec<u8>| {
        out.extend_from_slice(payload.get(..len).unwrap_or_default());
    };
    match frame.header.op {
        op @ (Op::Put | Op::Delete | Op::Replace | Op::Move) => {
            Mutation::decode_logged(frame)?;
            cut(frame.payload, fixed_len(op), out);
        }
        Op::Batch => {
            Mutation::decode_logged(frame)?;
            cut(frame.payload, BATCH_HEAD_LEN, out);
            let mut rest = frame.payload.get(BATCH_HEAD_LEN..).unwrap_or_default();
            while let Some((&[l0, l1, l2, l3, code, ..], _)) =
                rest.split_first_chunk::<ITEM_HEADER_LEN>()
            {
                let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
                let op = Op::from_code(code).ok_or(WireError::Operation(code))?;
                cut(rest, ITEM_HEADER_LEN + fixed_len(op), out);
                rest = rest.get(len..).unwrap_or_default();
            }
        }
        _ => out.extend_from_slice(frame.payload),
    }
    Ok(())
}

/// Octets of a change's payload that the outline keeps.
const fn fixed_len(op: Op) -> usize {
    match op {
        Op::Move => 2 * TARGET_LEN,
        _ => TARGET_LEN,
    }
}

/// Whether `outline` may be the outline of an entry of `len` octets.
fn check(outline: &[u8], len: u32) -> bool {
    let mut left = len as usize;
    for next in Sketches(outline) {
        let Ok((header, sketch)) = next else {
            return false;
        };
        if let Sketch::Batch(shapes) = sketch
            && !is_whole(shapes, header.len)
        {
            return false;
        }
        match left.checked_sub(header.len) {
            Some(less) => left = less,
            None => return false,
        }
    }
    left == 0
}

/// Whether the items fill a BATCH of length `len`, and the first PUT has a body.
fn is_whole(mut shapes: Shapes<'_>, len: usize) -> bool {
    let mut bodies = false;
    for (_, shape) in shapes.by_ref() {
        if let Shape::Put { body, .. } = shape {
            bodies |= body.is_some();
            if !bodies {
                return false;
            }
        }
    }
    shapes.rest.is_empty() && shapes.offset.checked_add(FRAME_MIN) == Some(len)
}

/// Returns the first frame of an outline, and the rest.
fn sketch(octets: &[u8]) -> Result<(Header, Sketch<'_>, &[u8]), WireError> {
    let header = Header::peek(octets, usize::MAX)?.ok_or(WireError::Checksum)?;
    let op = header.op;
    let layout = WireError::Layout(op);
    let rest = octets.get(HEADER_LEN..).ok_or(layout)?;
    // `Header::peek` accepts no shorter frame.
    let payload = header.len - FRAME_MIN;
    match op {
        Op::Put | Op::Delete | Op::Replace | Op::Move => {
            let (fixed, rest) = rest.split_at_checked(fixed_len(op)).ok_or(layout)?;
            let shape = shape(op, header.flags, fixed, payload).ok_or(layout)?;
            Ok((header, Sketch::Change(shape), rest))
        }
        Op::Batch => {
            let (head, rest) = rest.split_first_chunk::<BATCH_HEAD_LEN>().ok_or(layout)?;
            let count = u32_at(head, 0).ok_or(layout)?;
            let mut after = rest;
            for _ in 0..count {
                after = item(after).ok_or(layout)?.2;
            }
            let shapes = Shapes {
                rest: &rest[..rest.len() - after.len()],
                offset: BATCH_HEAD_LEN,
            };
            Ok((header, Sketch::Batch(shapes), after))
        }
        _ => {
            let (payload, rest) = rest.split_at_checked(payload).ok_or(layout)?;
            Ok((header, Sketch::Whole(Frame { header, payload }), rest))
        }
    }
}

/// Returns the first item of a BATCH, its length in the frame, and the rest of the outline.
fn item(octets: &[u8]) -> Option<(Shape, usize, &[u8])> {
    let (&[l0, l1, l2, l3, code, flags, ..], rest) =
        octets.split_first_chunk::<ITEM_HEADER_LEN>()?;
    let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let op = Op::from_code(code)?;
    let (fixed, rest) = rest.split_at_checked(fixed_len(op))?;
    let payload = len.checked_sub(ITEM_HEADER_LEN)?;
    Some((shape(op, flags, fixed, payload)?, len, rest))
}

/// Returns the shape of a change from the kept part of its payload; `payload` is the original
/// length.
fn shape(op: Op, flags: u8, fixed: &[u8], payload: usize) -> Option<Shape> {
    let left = payload.checked_sub(fixed_len(op))?;
    let (queue, id) = (QueueId(u32_at(fixed, 0)?), RecordId(u64_at(fixed, 8)?));
    let meta = u32_at(fixed, 4)?;
    (meta as usize <= META_MAX).then_some(())?;
    let body = u32::try_from(left.checked_sub(meta as usize)?).ok()?;
    // Only a PUT has octets after its metadata.
    let whole = (body == 0).then_some(());
    match op {
        Op::Put if flags & FLAG_SAME_BODY != 0 => whole.map(|()| Shape::Put {
            queue,
            id,
            meta,
            body: None,
        }),
        Op::Put => Some(Shape::Put {
            queue,
            id,
            meta,
            body: Some(body),
        }),
        Op::Delete => (left == 0).then_some(Shape::Delete { queue, id }),
        Op::Replace => whole.map(|()| Shape::Replace { queue, id, meta }),
        Op::Move => {
            whole?;
            let to = QueueId(u32_at(fixed, TARGET_LEN)?);
            let to_id = RecordId(u64_at(fixed, TARGET_LEN + 8)?);
            let renewed = flags & FLAG_NEW_META != 0;
            Some(Shape::Move {
                queue,
                id,
                to,
                to_id,
                meta: renewed.then_some(meta),
            })
        }
        _ => None,
    }
}

fn u32_at(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

fn u64_at(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*octets.get(at..)?.first_chunk()?))
}

/// Counts the records that share the body of a PUT followed by `rest`.
pub(super) fn sharers(rest: impl Iterator<Item = (usize, Shape)>) -> u32 {
    let mut count = 1;
    for (_, shape) in rest {
        match shape {
            Shape::Put { body: None, .. } => count += 1,
            Shape::Put { body: Some(_), .. } => break,
            _ => {}
        }
    }
    count
}
