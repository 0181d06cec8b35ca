//! The common parts of all frames: header, checksum, limits.
//!
//! ```text
//! octet   0        4    5      6      8                16             len-4     len
//!         +--------+----+------+------+----------------+-- payload ... --+--------+
//!         | len    | op | flags| 0    | number         |                 | crc32c |
//!         | u32    | u8 | u8   | u16  | u64            |                 | u32    |
//!         +--------+----+------+------+----------------+-----------------+--------+
//! ```
//! All numbers are little-endian. `len` counts the whole frame. `number` is a transaction number or a
//! sequence number, as the operation says. `crc32c` is CRC-32C (RFC 3720, section 12.1) of all
//! octets before it, header included.

use crate::handshake::is_earlier;
use vere_checksum::crc32c;

/// Octets of a frame's header.
pub const HEADER_LEN: usize = 16;
/// Octets of a frame's checksum.
pub const CHECKSUM_LEN: usize = 4;
/// The shortest frame: a header and a checksum.
pub const FRAME_MIN: usize = HEADER_LEN + CHECKSUM_LEN;
/// Octets of the header of an operation inside a BATCH.
pub const ITEM_HEADER_LEN: usize = 8;

/// PUT inside a BATCH: the body is the body of the last PUT with a body before.
pub const FLAG_SAME_BODY: u8 = 0x01;
/// MOVE: the record gets the metadata in the payload.
pub const FLAG_NEW_META: u8 = 0x01;
/// PURGE: forget the queue as well.
pub const FLAG_DROP: u8 = 0x01;
/// BLOCK, QUEUE_LIST: the answer is complete.
pub const FLAG_END: u8 = 0x01;
/// BLOCK: the queue does not exist.
pub const FLAG_UNKNOWN: u8 = 0x02;
/// HELLO: a group that is made here is to live in memory only, even on a node with a log store.
pub const FLAG_NO_LOG: u8 = 0x01;
/// DUTY: log from now on.
pub const FLAG_LOG: u8 = 0x01;
/// END: even if the group holds records.
pub(crate) const FLAG_RECORDS: u8 = 0x01;
/// WELCOME, STATS: acknowledgements wait for the disk.
pub const FLAG_SYNCED: u8 = 0x01;
/// WELCOME: the group is incomplete here.
pub const FLAG_INCOMPLETE: u8 = 0x02;
/// STATS: the node refuses new records for want of room.
pub const FLAG_FULL: u8 = 0x02;
/// STATS: the group is incomplete here.
pub const FLAG_SYNCING: u8 = 0x04;
/// STATS: the node found its copy of the group damaged, and the copy is not complete again yet.
pub const FLAG_DAMAGED: u8 = 0x08;
/// A copy of an existing record or queue, not a new transaction. From an owner to an incomplete group:
/// CREATE, PUT. In a node's log: CREATE, PUT, REPLACE and BATCH.
pub const FLAG_KEPT: u8 = 0x80;

/// The purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Node: identity, and a challenge. `number` is the incarnation.
    Greeting = 0x01,
    /// Owner or reader: the group, and a proof. `number` is the last acknowledgement seen.
    Hello = 0x02,
    /// Node: acceptance, with the node's proof. `number` is the last transaction processed.
    Welcome = 0x03,
    /// Node: everything up to transaction `number` is safe, but for the refused ones listed.
    Ack = 0x04,
    /// Node: answer to FETCH; record frames follow.
    Block = 0x05,
    /// Node: answer to STAT.
    Stats = 0x06,
    /// Node: answer to QUEUES.
    QueueList = 0x07,
    /// Node: answer to HEARTBEAT.
    Alive = 0x08,
    /// Node: answer to ATTACH.
    Attached = 0x09,
    /// Node: the connection ends, and why.
    Close = 0x0f,
    /// Owner: create a queue, or change its limits.
    Create = 0x20,
    /// Owner: append a record. Also the form of records in a BLOCK.
    Put = 0x21,
    /// Owner: end a record.
    Delete = 0x22,
    /// Owner: replace the metadata of a record.
    Replace = 0x23,
    /// Owner: take a record to the end of another queue.
    Move = 0x24,
    /// Owner: end all records up to one, or forget a queue.
    Purge = 0x25,
    /// Owner: several PUT, DELETE, REPLACE and MOVE, applied completely or not at all.
    Batch = 0x26,
    /// Anybody welcome: give records back.
    Fetch = 0x40,
    /// Anybody welcome: figures.
    Stat = 0x41,
    /// Anybody welcome: the queues of the group.
    Queues = 0x42,
    /// Anybody welcome: a sign of life.
    Heartbeat = 0x43,
    /// Owner, on a standby connection: this connection becomes the owner's active connection.
    Attach = 0x50,
    /// Owner: forget everything and begin after transaction `number`, incomplete. In a log as well.
    Reset = 0x52,
    /// Owner: the group is whole. In a log as well, with the last transaction as `number`.
    Complete = 0x53,
    /// Owner: log from now on, or no more.
    Duty = 0x54,
    /// Owner: the group is to be gone from the node.
    End = 0x55,
    /// Only in a node's log: transaction `number` was refused.
    Refused = 0x60,
    /// Only in a node's log: after transaction `number` another owner came.
    Owned = 0x61,
    /// Only in a node's log: after transaction `number` other limits and accounts hold.
    Chartered = 0x62,
}

impl Op {
    const ALL: [Self; 29] = [
        Self::Greeting,
        Self::Hello,
        Self::Welcome,
        Self::Ack,
        Self::Block,
        Self::Stats,
        Self::QueueList,
        Self::Alive,
        Self::Attached,
        Self::Close,
        Self::Create,
        Self::Put,
        Self::Delete,
        Self::Replace,
        Self::Move,
        Self::Purge,
        Self::Batch,
        Self::Fetch,
        Self::Stat,
        Self::Queues,
        Self::Heartbeat,
        Self::Attach,
        Self::Reset,
        Self::Complete,
        Self::Duty,
        Self::End,
        Self::Refused,
        Self::Owned,
        Self::Chartered,
    ];

    /// Decodes an operation; `None` for an operation unknown to this version.
    #[must_use]
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        // The frequent operations first; the rest is rare.
        match code {
            0x21 => Some(Self::Put),
            0x22 => Some(Self::Delete),
            0x04 => Some(Self::Ack),
            _ => Self::rare(code),
        }
    }

    #[cold]
    fn rare(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.code() == code)
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether the operation changes queues and consumes a transaction number.
    #[must_use]
    pub const fn is_mutation(self) -> bool {
        matches!(self.code(), 0x20..=0x26)
    }
}

/// The reason why octets are not a frame of this protocol. Always the sender's fault, or the line's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The length is below the least or above what is accepted here.
    #[error("frame length {len} is not within 20..={max}")]
    Length {
        /// The length field of the frame.
        len: u32,
        /// What is accepted.
        max: u32,
    },
    /// The operation does not exist, or not in this direction.
    #[error("operation {0:#04x} is not expected")]
    Operation(u8),
    /// A flag or reserved field that must be 0 is set.
    #[error("reserved field is not zero")]
    Reserved,
    /// The layout of the payload does not fit the operation.
    #[error("payload is not that of {0:?}")]
    Layout(Op),
    /// The checksum does not match.
    #[error("frame checksum is wrong")]
    Checksum,
    /// A GREETING of an earlier version, from when checksums were others.
    #[error("the node speaks an earlier version of the protocol")]
    Earlier,
}

/// A frame's header, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Octets of the whole frame.
    pub len: usize,
    /// The operation.
    pub op: Op,
    /// See the `FLAG_` constants.
    pub flags: u8,
    /// Transaction or sequence number.
    pub number: u64,
}

impl Header {
    /// Decodes the header at the start of `bytes`, before memory is reserved for the payload.
    ///
    /// `Ok(None)` when fewer than [`HEADER_LEN`] octets are present.
    ///
    /// # Errors
    ///
    /// [`WireError::Length`] when the frame is shorter than the minimum or longer than `max` octets,
    /// [`WireError::Operation`], [`WireError::Reserved`].
    #[inline]
    pub fn peek(bytes: &[u8], max: usize) -> Result<Option<Self>, WireError> {
        let Some((&[l0, l1, l2, l3, code, flags, z0, z1, ref number @ ..], _)) =
            bytes.split_first_chunk::<HEADER_LEN>()
        else {
            return Ok(None);
        };
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        let size = usize::try_from(len).unwrap_or(usize::MAX);
        if size < FRAME_MIN || size > max {
            let max = u32::try_from(max).unwrap_or(u32::MAX);
            return Err(WireError::Length { len, max });
        }
        let op = Op::from_code(code).ok_or(WireError::Operation(code))?;
        if z0 != 0 || z1 != 0 {
            return Err(WireError::Reserved);
        }
        let number = u64::from_le_bytes(*number);
        Ok(Some(Self {
            len: size,
            op,
            flags,
            number,
        }))
    }
}

/// A whole frame with a verified checksum.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its header.
    pub header: Header,
    /// The octets between header and checksum.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads the frame of `header` from the start of `bytes`. `Ok(None)` while the frame is
    /// incomplete.
    ///
    /// # Errors
    ///
    /// [`WireError::Checksum`], [`WireError::Earlier`].
    #[inline]
    pub fn open(header: Header, bytes: &'a [u8]) -> Result<Option<Self>, WireError> {
        let Some(frame) = bytes.get(..header.len) else {
            return Ok(None);
        };
        let Some((content, sum)) = frame.split_last_chunk::<CHECKSUM_LEN>() else {
            return Err(WireError::Checksum);
        };
        if crc32c(content) != u32::from_le_bytes(*sum) {
            return Err(mismatch(header.op, content));
        }
        let payload = content.get(HEADER_LEN..).unwrap_or_default();
        Ok(Some(Self { header, payload }))
    }

    /// As [`Frame::open`], for octets with a checksum verified before: the checksum is not compared
    /// again.
    #[must_use]
    pub fn open_known(header: Header, bytes: &'a [u8]) -> Option<Self> {
        let end = header.len.checked_sub(CHECKSUM_LEN)?;
        let payload = bytes.get(..header.len)?.get(HEADER_LEN..end)?;
        Some(Self { header, payload })
    }

    /// Reads the frame at the start of `bytes`: [`Header::peek`], then [`Frame::open`].
    ///
    /// # Errors
    ///
    /// As these two.
    pub fn read(bytes: &'a [u8], max: usize) -> Result<Option<Self>, WireError> {
        match Header::peek(bytes, max)? {
            Some(header) => Self::open(header, bytes),
            None => Ok(None),
        }
    }

    pub(crate) const fn layout(&self) -> WireError {
        WireError::Layout(self.header.op)
    }
}

/// Appends a frame to `out`: `payload` writes the octets between header and checksum. A frame beyond
/// `u32::MAX` octets cannot be written; the caller bounds the payload.
pub(crate) fn write_frame(
    out: &mut Vec<u8>,
    op: Op,
    flags: u8,
    number: u64,
    payload: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    let [n0, n1, n2, n3, n4, n5, n6, n7] = number.to_le_bytes();
    let code = op.code();
    out.extend_from_slice(&[
        0, 0, 0, 0, code, flags, 0, 0, n0, n1, n2, n3, n4, n5, n6, n7,
    ]);
    payload(out);
    seal(out, start);
}

/// Fills in length and checksum of the frame that begins at `start`.
fn seal(out: &mut Vec<u8>, start: usize) {
    let len = out.len().saturating_sub(start).saturating_add(CHECKSUM_LEN);
    debug_assert!(u32::try_from(len).is_ok(), "frame of {len} octets");
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    if let Some(field) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *field = len.to_le_bytes();
    }
    let sum = crc32c(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The reason for a wrong checksum.
#[cold]
fn mismatch(op: Op, content: &[u8]) -> WireError {
    let payload = content.get(HEADER_LEN..).unwrap_or_default();
    if op == Op::Greeting && is_earlier(payload) {
        WireError::Earlier
    } else {
        WireError::Checksum
    }
}

/// Takes fields from the front of a payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[octet]| *octet)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(|octets| u16::from_le_bytes(*octets))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|octets| u32::from_le_bytes(*octets))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|octets| u64::from_le_bytes(*octets))
    }

    /// Octets of a length given by a `u32` field.
    pub(crate) fn slice(&mut self, len: u32) -> Option<&'a [u8]> {
        let (slice, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(slice)
    }

    /// A reserved field of four octets: 0.
    pub(crate) fn zero(&mut self) -> Option<()> {
        (self.u32()? == 0).then_some(())
    }

    /// Checks that no octets are left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
