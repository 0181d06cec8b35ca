//! PUT and DELETE in frames of their own, read without going through [`Mutation`](crate::Mutation):
//! they come all the time, and what they say beside the record's octets fits into registers.

use crate::checksum::checksum;
use crate::frame::{CHECKSUM_LEN, Fields, HEADER_LEN, Op};
use crate::mutation::TARGET_LEN;
use crate::types::{META_MAX, QueueId, RecordId, Txn};

/// The four octets after the length: the operation, no flags, nothing reserved.
const PUT: u32 = Op::Put as u32;
const DELETE: u32 = Op::Delete as u32;

/// A PUT or DELETE in a frame of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain {
    /// The queue.
    pub queue: QueueId,
    /// The record.
    pub id: RecordId,
    /// What a PUT brings; `None`: it is a DELETE.
    pub put: Option<PlainPut>,
}

/// Where the parts of a PUT end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainPut {
    /// Octets of metadata, which come first.
    pub meta_len: u32,
    /// Octets of metadata and body.
    pub len: u32,
}

impl Plain {
    /// Reads the frame at the start of `bytes`, of at most `max` octets, when it is a whole PUT or DELETE
    /// with this transaction number in which nothing is wrong; gives its length too. `None`: it is
    /// something else or not whole, or [`Frame::read`](crate::Frame::read) and
    /// [`Mutation::decode`](crate::Mutation::decode) say what is wrong.
    ///
    /// It takes no [`Frame`](crate::Frame) apart: a node spends much of its time here, and what stays in
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
        if checksum(content) != u32::from_le_bytes(*sum) {
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
