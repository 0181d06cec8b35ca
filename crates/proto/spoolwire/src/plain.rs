//! PUT and DELETE in frames of their own, decoded without [`Mutation`](crate::Mutation): both frames are
//! very frequent, and their fields beside the record's octets fit into registers.

use vere_units::{QueueId, RecordId, Txn};

use crate::frame::{CHECKSUM_LEN, Fields, HEADER_LEN, Op};
use crate::mutation::TARGET_LEN;
use crate::types::META_MAX;
use vere_checksum::crc32c;

/// The four octets after the length: the operation, no flags, nothing reserved.
const PUT: u32 = Op::Put as u32;
const DELETE: u32 = Op::Delete as u32;

/// A PUT or DELETE in a separate frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The queue.
    pub queue: QueueId,
    /// The record.
    pub id: RecordId,
    /// The record of a PUT; `None` for a DELETE.
    pub put: Option<PlainPut>,
}

/// Where the parts of a PUT end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainPut {
    /// Octets of metadata, in front of the body.
    pub meta_len: u32,
    /// Octets of metadata and body.
    pub len: u32,
}

impl Plain {
    /// Decodes the frame at the start of `bytes`, of at most `max` octets, if the frame is a complete and
    /// valid PUT or DELETE with this transaction number; returns the length too. `None` for any other or
    /// incomplete frame, and for a frame with an error found by [`Frame::read`](crate::Frame::read) and
    /// [`Mutation::decode`](crate::Mutation::decode).
    ///
    /// The function builds no [`Frame`](crate::Frame): a node spends much of its time here, and values in
    /// registers need not be written and read again.
    #[must_use]
    #[inline(always)]
    pub fn read(bytes: &[u8], max: usize, number: Txn) -> Option<(Self, usize)> {
        let mut fields = Fields(bytes.first_chunk::<{ HEADER_LEN + TARGET_LEN }>()?);
        let (len, kind, txn) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let (queue, meta_len, id) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let len = usize::try_from(len).ok()?;
        if txn != number.0 || len > max || !matches!(kind, PUT | DELETE) {
            return None;
        }
        let (content, sum) = bytes.get(..len)?.split_last_chunk::<CHECKSUM_LEN>()?;
        if crc32c(content) != u32::from_le_bytes(*sum) {
            return None;
        }
        let record = content.len().checked_sub(HEADER_LEN + TARGET_LEN)?;
        let record = u32::try_from(record).ok()?;
        let put = (kind == PUT).then_some(PlainPut {
            meta_len,
            len: record,
        });
        let fits = match put {
            Some(_) => meta_len <= record && meta_len as usize <= META_MAX,
            None => meta_len == 0 && record == 0,
        };
        let (queue, id) = (QueueId(queue), RecordId(id));
        fits.then_some((Self { queue, id, put }, len))
    }
}
