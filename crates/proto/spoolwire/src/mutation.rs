//! The frames that change queues: CREATE, PUT, DELETE, REPLACE, MOVE, PURGE, BATCH.
//!
//! PUT, DELETE, REPLACE and MOVE begin alike, also inside a BATCH:
//!
//! ```text
//! +0   queue u32 | metadata length u32 | record u64                       "target"
//! +16  PUT, REPLACE:  metadata | PUT: body, up to the end
//! +16  MOVE:          to queue u32 | 0 u32 | to record u64 | metadata (flag 0x01)
//! ```

use vere_units::{QueueId, RecordId, Txn};

use crate::charter::{Grants, QueueCharter};
use crate::frame::{
    FLAG_DROP, FLAG_KEPT, FLAG_NEW_META, FLAG_SAME_BODY, Fields, Frame, ITEM_HEADER_LEN, Op,
    WireError, write_frame,
};
use crate::handshake::name;
use crate::kept::read_kept_create;
use crate::types::{META_MAX, NAME_MAX, QUEUES_MAX, QueueLimits};

/// Octets of the common beginning of PUT, DELETE, REPLACE and MOVE.
pub const TARGET_LEN: usize = 16;

/// A change of a record, in a separate frame or inside a BATCH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Appends a record.
    Put {
        /// The queue.
        queue: QueueId,
        /// The record number, above all earlier numbers in the queue.
        id: RecordId,
        /// At most [`META_MAX`] octets.
        meta: &'a [u8],
        /// The body; `None` for the body of the last PUT with a body in the BATCH.
        body: Option<&'a [u8]>,
    },
    /// Ends a record.
    Delete {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
    },
    /// Replaces the metadata of a record.
    Replace {
        /// The queue.
        queue: QueueId,
        /// The record.
        id: RecordId,
        /// At most [`META_MAX`] octets.
        meta: &'a [u8],
    },
    /// Takes a record to the end of another queue.
    Move {
        /// The source queue.
        queue: QueueId,
        /// Its number there.
        id: RecordId,
        /// The target queue; possibly the source queue.
        to: QueueId,
        /// The record number in the target queue, above all earlier numbers.
        to_id: RecordId,
        /// The new metadata, if changed; at most [`META_MAX`] octets.
        meta: Option<&'a [u8]>,
    },
}

/// A frame that consumes a transaction number.
#[derive(Debug, Clone, Copy)]
pub enum Mutation<'a> {
    /// Creates a queue, or gives the queue with this number and name a new charter.
    Create {
        /// The queue number, below [`QUEUES_MAX`].
        queue: QueueId,
        /// Its name.
        name: &'a str,
        /// The capacity and the readers of the queue.
        charter: QueueCharter<'a>,
    },
    /// Copies a queue from another node, or gives the queue this charter and at least this next
    /// number: a CREATE with [`FLAG_KEPT`], which consumes no transaction number.
    KeptCreate {
        /// The queue number, below [`QUEUES_MAX`].
        queue: QueueId,
        /// Its name.
        name: &'a str,
        /// The capacity and the readers of the queue.
        charter: QueueCharter<'a>,
        /// The number above every record ever held in the queue.
        next: RecordId,
    },
    /// One change.
    Change(Change<'a>),
    /// Ends all records up to and with `through`.
    Purge {
        /// The queue.
        queue: QueueId,
        /// The last record to end.
        through: RecordId,
        /// Whether to remove the queue as well; the queue must then be empty after the purge.
        drop: bool,
    },
    /// Several changes, applied completely or not at all.
    Batch(Changes<'a>),
}

impl<'a> Mutation<'a> {
    /// Reads a mutation frame. Every item of a BATCH is checked here, so that [`Changes`] yields the
    /// items without errors.
    ///
    /// # Errors
    ///
    /// [`WireError::Operation`] for any other frame, [`WireError::Layout`] when lengths do not add up
    /// or exceed their limits, [`WireError::Reserved`].
    #[inline]
    pub fn decode(frame: &Frame<'a>) -> Result<Self, WireError> {
        Self::decode_with(frame, 0)
    }

    /// As [`Mutation::decode`], for a node's log and for what is copied to a node: [`FLAG_KEPT`] is
    /// allowed.
    ///
    /// # Errors
    ///
    /// As [`Mutation::decode`].
    pub fn decode_logged(frame: &Frame<'a>) -> Result<Self, WireError> {
        Self::decode_with(frame, FLAG_KEPT)
    }

    #[inline]
    fn decode_with(frame: &Frame<'a>, extra: u8) -> Result<Self, WireError> {
        let op = frame.header.op;
        let flags = frame.header.flags & !extra;
        let layout = || WireError::Layout(op);
        match op {
            Op::Put | Op::Delete | Op::Replace | Op::Move => {
                if op == Op::Put && flags != 0 {
                    return Err(WireError::Reserved);
                }
                change(op, flags, frame.payload).map(Self::Change)
            }
            Op::Create => {
                no_flags(flags)?;
                if frame.header.flags == flags {
                    create(frame.payload).ok_or_else(layout)
                } else {
                    read_kept_create(frame.payload).ok_or_else(layout)
                }
            }
            Op::Purge => {
                no_flags(flags & !FLAG_DROP)?;
                purge(frame.payload, flags & FLAG_DROP != 0).ok_or_else(layout)
            }
            Op::Batch => {
                no_flags(flags)?;
                Changes::new(frame.payload).map(Self::Batch)
            }
            other => Err(WireError::Operation(other.code())),
        }
    }
}

const fn no_flags(flags: u8) -> Result<(), WireError> {
    if flags == 0 {
        Ok(())
    } else {
        Err(WireError::Reserved)
    }
}

fn create(payload: &[u8]) -> Option<Mutation<'_>> {
    let mut fields = Fields(payload);
    let (queue, len) = (fields.u32()?, fields.u32()?);
    (queue < QUEUES_MAX).then_some(())?;
    let limits = QueueLimits {
        length_max: fields.u64()?,
        bytes_max: fields.u64()?,
    };
    let name = name(fields.slice(len)?)?;
    let readers = Grants::read_of_queue(fields.0)?;
    Some(Mutation::Create {
        queue: QueueId(queue),
        name,
        charter: QueueCharter { limits, readers },
    })
}

fn purge(payload: &[u8], drop: bool) -> Option<Mutation<'_>> {
    let mut fields = Fields(payload);
    let queue = QueueId(fields.u32()?);
    fields.zero()?;
    let through = RecordId(fields.u64()?);
    fields.end()?;
    Some(Mutation::Purge {
        queue,
        through,
        drop,
    })
}

#[inline]
fn change(op: Op, flags: u8, payload: &[u8]) -> Result<Change<'_>, WireError> {
    let allowed = match op {
        Op::Put => FLAG_SAME_BODY,
        Op::Move => FLAG_NEW_META,
        _ => 0,
    };
    no_flags(flags & !allowed)?;
    read_change(op, flags & allowed != 0, payload).ok_or(WireError::Layout(op))
}

#[inline]
fn read_change(op: Op, flag: bool, payload: &[u8]) -> Option<Change<'_>> {
    let mut fields = Fields(payload);
    let (queue, meta_len) = (QueueId(fields.u32()?), fields.u32()?);
    let id = RecordId(fields.u64()?);
    if usize::try_from(meta_len).ok()? > META_MAX {
        return None;
    }
    match op {
        Op::Put => {
            let meta = fields.slice(meta_len)?;
            let body = if flag { None } else { Some(fields.0) };
            (!flag || fields.0.is_empty()).then_some(())?;
            Some(Change::Put {
                queue,
                id,
                meta,
                body,
            })
        }
        Op::Delete => {
            (meta_len == 0).then_some(())?;
            fields.end()?;
            Some(Change::Delete { queue, id })
        }
        Op::Replace => {
            let meta = fields.slice(meta_len)?;
            fields.end()?;
            Some(Change::Replace { queue, id, meta })
        }
        Op::Move => {
            let to = QueueId(fields.u32()?);
            fields.zero()?;
            let to_id = RecordId(fields.u64()?);
            let meta = fields.slice(meta_len)?;
            fields.end()?;
            (flag || meta.is_empty()).then_some(())?;
            let meta = flag.then_some(meta);
            Some(Change::Move {
                queue,
                id,
                to,
                to_id,
                meta,
            })
        }
        _ => None,
    }
}

/// The changes of a BATCH, each with the offset of its item within the payload.
///
/// ```text
/// 16  count u32 | 0 u32
/// 24  count x { len u32 | op u8 | flags u8 | 0 u16 | as in a separate frame }
/// ```
/// `len` counts the item with its eight octets before the rest.
#[derive(Debug, Clone, Copy)]
pub struct Changes<'a> {
    items: &'a [u8],
    offset: usize,
}

/// Octets of a BATCH's payload before the first item.
pub const BATCH_HEAD_LEN: usize = 8;

impl<'a> Changes<'a> {
    fn new(payload: &'a [u8]) -> Result<Self, WireError> {
        let layout = WireError::Layout(Op::Batch);
        let mut fields = Fields(payload);
        let count = fields.u32().ok_or(layout)?;
        fields.zero().ok_or(layout)?;
        let changes = Self {
            items: fields.0,
            offset: BATCH_HEAD_LEN,
        };
        let (mut found, mut rest, mut body_seen) = (0_u32, fields.0, false);
        while !rest.is_empty() {
            let (change, after) = item(rest)?;
            if let Change::Put { body, .. } = change {
                body_seen |= body.is_some();
                if !body_seen {
                    return Err(layout);
                }
            }
            found = found.saturating_add(1);
            rest = after;
        }
        if found == count && count > 0 {
            Ok(changes)
        } else {
            Err(layout)
        }
    }
}

fn item(items: &[u8]) -> Result<(Change<'_>, &[u8]), WireError> {
    let layout = WireError::Layout(Op::Batch);
    let &[l0, l1, l2, l3, code, flags, z0, z1] = items.first_chunk::<8>().ok_or(layout)?;
    let len = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).unwrap_or(usize::MAX);
    let (item, rest) = items.split_at_checked(len).ok_or(layout)?;
    let payload = item.get(ITEM_HEADER_LEN..).ok_or(layout)?;
    if z0 != 0 || z1 != 0 {
        return Err(WireError::Reserved);
    }
    let op = Op::from_code(code).ok_or(WireError::Operation(code))?;
    match op {
        Op::Put | Op::Delete | Op::Replace | Op::Move => Ok((change(op, flags, payload)?, rest)),
        other => Err(WireError::Operation(other.code())),
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = (usize, Change<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (change, rest) = item(self.items).ok()?;
        let offset = self.offset;
        let len = self.items.len().saturating_sub(rest.len());
        self.offset = offset.saturating_add(len);
        self.items = rest;
        Some((offset, change))
    }
}

/// Appends a CREATE:
///
/// ```text
/// 16  queue u32 | name length u32 | records at most u64 | octets at most u64 | name |
///     grants up to the end
/// ```
pub fn encode_create<'a>(
    out: &mut Vec<u8>,
    txn: Txn,
    queue: QueueId,
    name: &str,
    charter: impl Into<QueueCharter<'a>>,
) {
    let QueueCharter { limits, readers } = charter.into();
    let name = name.as_bytes();
    let name = name.get(..NAME_MAX).unwrap_or(name);
    write_frame(out, Op::Create, 0, txn.0, |out| {
        out.extend_from_slice(&queue.0.to_le_bytes());
        let len = u32::try_from(name.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&limits.length_max.to_le_bytes());
        out.extend_from_slice(&limits.bytes_max.to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(readers.octets());
    });
}

/// Appends a PURGE:
///
/// ```text
/// 16  queue u32 | 0 u32 | last record u64            flags: 0x01 forget the queue
/// ```
pub fn encode_purge(out: &mut Vec<u8>, txn: Txn, queue: QueueId, through: RecordId, drop: bool) {
    let flags = if drop { FLAG_DROP } else { 0 };
    write_frame(out, Op::Purge, flags, txn.0, |out| {
        out.extend_from_slice(&queue.0.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&through.0.to_le_bytes());
    });
}

/// Appends the frame of a change. `flags` is 0, or [`FLAG_KEPT`].
pub fn encode_change(out: &mut Vec<u8>, txn: Txn, change: &Change<'_>, flags: u8) {
    out.reserve(change_len(change).saturating_add(crate::FRAME_MIN));
    let op = change_op(change);
    write_frame(out, op, change_flags(change) | flags, txn.0, |out| {
        write_change(out, change);
    });
}

/// Appends a BATCH of the changes; see [`Changes`]. `flags` as in [`encode_change`].
pub fn encode_batch<'a>(
    out: &mut Vec<u8>,
    txn: Txn,
    changes: impl Iterator<Item = Change<'a>> + Clone,
    flags: u8,
) {
    let count = u32::try_from(changes.clone().count()).unwrap_or(u32::MAX);
    write_frame(out, Op::Batch, flags, txn.0, |out| {
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for change in changes {
            let len = change_len(&change).saturating_add(ITEM_HEADER_LEN);
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(&[change_op(&change).code(), change_flags(&change), 0, 0]);
            write_change(out, &change);
        }
    });
}

/// Octets of a change behind the header.
#[must_use]
pub fn change_len(change: &Change<'_>) -> usize {
    let rest = match change {
        Change::Put { meta, body, .. } => meta.len().saturating_add(body.map_or(0, <[u8]>::len)),
        Change::Delete { .. } => 0,
        Change::Replace { meta, .. } => meta.len(),
        Change::Move { meta, .. } => meta.map_or(0, <[u8]>::len).saturating_add(TARGET_LEN),
    };
    rest.saturating_add(TARGET_LEN)
}

const fn change_op(change: &Change<'_>) -> Op {
    match change {
        Change::Put { .. } => Op::Put,
        Change::Delete { .. } => Op::Delete,
        Change::Replace { .. } => Op::Replace,
        Change::Move { .. } => Op::Move,
    }
}

const fn change_flags(change: &Change<'_>) -> u8 {
    match change {
        Change::Put { body: None, .. } => FLAG_SAME_BODY,
        Change::Move { meta: Some(_), .. } => FLAG_NEW_META,
        _ => 0,
    }
}

fn write_change(out: &mut Vec<u8>, change: &Change<'_>) {
    match *change {
        Change::Put {
            queue,
            id,
            meta,
            body,
        } => {
            write_target(out, queue, id, meta.len());
            out.extend_from_slice(meta);
            out.extend_from_slice(body.unwrap_or_default());
        }
        Change::Delete { queue, id } => write_target(out, queue, id, 0),
        Change::Replace { queue, id, meta } => {
            write_target(out, queue, id, meta.len());
            out.extend_from_slice(meta);
        }
        Change::Move {
            queue,
            id,
            to,
            to_id,
            meta,
        } => {
            let meta = meta.unwrap_or_default();
            write_target(out, queue, id, meta.len());
            write_target(out, to, to_id, 0);
            out.extend_from_slice(meta);
        }
    }
}

fn write_target(out: &mut Vec<u8>, queue: QueueId, id: RecordId, meta_len: usize) {
    let [q0, q1, q2, q3] = queue.0.to_le_bytes();
    let [m0, m1, m2, m3] = u32::try_from(meta_len).unwrap_or(u32::MAX).to_le_bytes();
    let [i0, i1, i2, i3, i4, i5, i6, i7] = id.0.to_le_bytes();
    out.extend_from_slice(&[
        q0, q1, q2, q3, m0, m1, m2, m3, i0, i1, i2, i3, i4, i5, i6, i7,
    ]);
}
