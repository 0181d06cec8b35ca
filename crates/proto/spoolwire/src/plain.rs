//! PUT and DELETE in frames of their own, read without going through [`Mutation`](crate::Mutation):
//! they come all the time, and what they say beside the record's octets fits into registers.

use crate::frame::{Fields, Frame, Header, Op};
use crate::mutation::TARGET_LEN;
use crate::types::{META_MAX, QueueId, RecordId};

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
    /// Whether a frame with this header may be one.
    #[must_use]
    #[inline]
    pub const fn may_be(header: &Header) -> bool {
        matches!(header.op, Op::Put | Op::Delete) && header.flags == 0
    }

    /// Reads a frame for which [`Plain::may_be`] says yes. `None` when
    /// [`Mutation::decode`](crate::Mutation::decode) has an error for it.
    #[must_use]
    #[inline]
    pub fn read(frame: &Frame<'_>) -> Option<Self> {
        let mut fields = Fields(frame.payload);
        let (queue, meta_len) = (QueueId(fields.u32()?), fields.u32()?);
        let id = RecordId(fields.u64()?);
        let len = u32::try_from(frame.payload.len().checked_sub(TARGET_LEN)?).ok()?;
        let put = PlainPut { meta_len, len };
        let (fits, put) = match frame.header.op {
            Op::Put => {
                let short = usize::try_from(meta_len).is_ok_and(|meta_len| meta_len <= META_MAX);
                (short && meta_len <= len, Some(put))
            }
            _ => (meta_len == 0 && len == 0, None),
        };
        fits.then_some(Self { queue, id, put })
    }
}
