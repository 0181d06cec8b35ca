//! The frames that rebuild a group on a node without the group: RESET, and frames that copy the content of
//! another node ([`FLAG_KEPT`]). PUT has its usual layout; CREATE carries more fields than the CREATE of a
//! new queue.

use vere_units::{QueueId, RecordId, Txn};

use crate::Mutation;
use crate::charter::{Grants, QueueCharter};
use crate::frame::{FLAG_KEPT, Fields, Frame, Op, WireError, write_frame};
use crate::handshake::{expect, name};
use crate::types::{QUEUES_MAX, QueueLimits, QueueStat};

/// Appends a RESET: every queue and record of the group goes, and the next transaction is the one after
/// `txn`. The group is incomplete from here on, until COMPLETE.
///
/// ```text
/// number = transaction                                                               no payload
/// ```
pub fn encode_reset(out: &mut Vec<u8>, txn: Txn) {
    write_frame(out, Op::Reset, 0, txn.0, |_| {});
}

/// Reads a RESET.
///
/// # Errors
///
/// [`WireError::Operation`] for another frame, [`WireError::Layout`], [`WireError::Reserved`].
pub fn decode_reset(frame: &Frame<'_>) -> Result<Txn, WireError> {
    expect(frame, Op::Reset, 0)?;
    Fields(frame.payload).end().ok_or_else(|| frame.layout())?;
    Ok(Txn(frame.header.number))
}

/// Appends a CREATE with [`FLAG_KEPT`]: an entry of a QUEUE_LIST, from which the node takes number, name,
/// limits, grants and next record. `txn` is the last transaction before the CREATE, which consumes no
/// transaction number.
///
/// ```text
/// 16  queue u32 | name length u16 | grants length u16 | records at most u64 | octets at most u64 |
///     first record u64 | next record u64 | records u64 | octets u64 | name | grants
/// ```
pub fn encode_kept_create(out: &mut Vec<u8>, txn: Txn, queue: &QueueStat) {
    write_frame(out, Op::Create, FLAG_KEPT, txn.0, |out| queue.encode(out));
}

pub(crate) fn read_kept_create(payload: &[u8]) -> Option<Mutation<'_>> {
    let mut fields = Fields(payload);
    let queue = fields.u32()?;
    let (len, grants) = (u32::from(fields.u16()?), u32::from(fields.u16()?));
    (queue < QUEUES_MAX).then_some(())?;
    let limits = QueueLimits {
        length_max: fields.u64()?,
        bytes_max: fields.u64()?,
    };
    let (_first, next) = (fields.u64()?, RecordId(fields.u64()?));
    let (_length, _bytes) = (fields.u64()?, fields.u64()?);
    let name = name(fields.slice(len)?)?;
    let readers = Grants::read_of_queue(fields.slice(grants)?)?;
    fields.end()?;
    Some(Mutation::KeptCreate {
        queue: QueueId(queue),
        name,
        charter: QueueCharter { limits, readers },
        next,
    })
}
