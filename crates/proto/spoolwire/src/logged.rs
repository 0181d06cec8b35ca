//! Frames that occur only in a node's log.

use vere_units::Txn;

use crate::NodeRefusal;
use crate::frame::{Fields, Frame, Op, WireError, write_frame};
use crate::handshake::expect;

/// Octets of a REFUSED frame: never longer than the refused request.
pub const REFUSED_FRAME_LEN: usize = 28;

/// Appends a REFUSED: the remains of a refused request.
///
/// ```text
/// number = transaction
/// 16  code u32 | 0 u32
/// ```
pub fn encode_refused(out: &mut Vec<u8>, txn: Txn, refusal: NodeRefusal) {
    write_frame(out, Op::Refused, 0, txn.0, |out| {
        out.extend_from_slice(&refusal.code().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    });
}

/// Reads a REFUSED.
///
/// # Errors
///
/// [`WireError::Operation`] for another frame, [`WireError::Layout`].
pub fn decode_refused(frame: &Frame<'_>) -> Result<(Txn, NodeRefusal), WireError> {
    expect(frame, Op::Refused, 0)?;
    let mut fields = Fields(frame.payload);
    let mut read = || {
        let code = fields.u32()?;
        fields.zero()?;
        fields.end()?;
        Some((Txn(frame.header.number), NodeRefusal::from_code(code)?))
    };
    read().ok_or_else(|| frame.layout())
}

/// Appends an OWNED: from here on another owner's transactions follow, or those of another epoch.
///
/// ```text
/// number = last transaction of the owners before
/// 16  owner u64 | epoch u64
/// ```
pub fn encode_owned(out: &mut Vec<u8>, txn: Txn, owner: u64, epoch: u64) {
    write_frame(out, Op::Owned, 0, txn.0, |out| {
        out.extend_from_slice(&owner.to_le_bytes());
        out.extend_from_slice(&epoch.to_le_bytes());
    });
}

/// Reads an OWNED: transaction, owner, epoch.
///
/// # Errors
///
/// [`WireError::Operation`] for another frame, [`WireError::Layout`].
pub fn decode_owned(frame: &Frame<'_>) -> Result<(Txn, u64, u64), WireError> {
    expect(frame, Op::Owned, 0)?;
    let mut fields = Fields(frame.payload);
    let mut read = || {
        let (owner, epoch) = (fields.u64()?, fields.u64()?);
        fields.end()?;
        Some((Txn(frame.header.number), owner, epoch))
    };
    read().ok_or_else(|| frame.layout())
}
