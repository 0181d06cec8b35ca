//! Where the looking at an owner's octets is, and what is left in the place of a frame that is refused.

use vere_spoolwire::{REFUSED_FRAME_LEN, Refusal, Txn, encode_refused};

use super::block::Terms;
use super::store::Store;

/// How far the octets of a segment are looked at and kept.
pub(super) struct Cursor {
    pub(super) read: usize,
    pub(super) keep: usize,
    pub(super) fill: usize,
}

impl Cursor {
    /// Keeps the frame that was read, of this length.
    #[inline]
    pub(super) fn keep(&mut self, octets: &mut [u8], len: usize) {
        if self.keep != self.read {
            octets.copy_within(self.read..self.read + len, self.keep);
        }
        self.keep += len;
        self.read += len;
    }
}

/// Notes that a frame that was read is refused.
#[cold]
pub(super) fn refuse(
    store: &mut Store,
    terms: &Terms,
    octets: &mut [u8],
    cursor: &mut Cursor,
    (txn, refusal): (Txn, Refusal),
) {
    store.refuse(txn, refusal);
    if terms.logged {
        note_refusal(octets, &mut cursor.keep, txn, refusal);
    }
}

/// Leaves a REFUSED where the request would have been kept; it is never longer.
pub(super) fn note_refusal(octets: &mut [u8], keep: &mut usize, txn: Txn, refusal: Refusal) {
    let mut frame = Vec::with_capacity(REFUSED_FRAME_LEN);
    encode_refused(&mut frame, txn, refusal);
    octets[*keep..*keep + frame.len()].copy_from_slice(&frame);
    *keep += frame.len();
}
