//! Position in an owner's input, and the log frame that replaces a refused frame.

use vere_spoolwire::{NodeRefusal, REFUSED_FRAME_LEN, Txn, encode_refused};

use super::block::Terms;
use super::store::Store;

/// Read and keep positions in the octets of a segment.
pub(super) struct Cursor {
    pub(super) read: usize,
    pub(super) keep: usize,
    pub(super) fill: usize,
}

impl Cursor {
    /// Keeps the frame of length `len` at the read position.
    #[inline]
    pub(super) fn keep(&mut self, octets: &mut [u8], len: usize) {
        if self.keep != self.read {
            octets.copy_within(self.read..self.read + len, self.keep);
        }
        self.keep += len;
        self.read += len;
    }
}

/// Records the refusal of the frame at the read position.
#[cold]
pub(super) fn refuse(
    store: &mut Store,
    terms: &Terms,
    octets: &mut [u8],
    cursor: &mut Cursor,
    (txn, refusal): (Txn, NodeRefusal),
) {
    store.refuse(txn, refusal);
    if terms.logged {
        note_refusal(octets, &mut cursor.keep, txn, refusal);
    }
}

/// Writes a REFUSED in the place of the refused request, which is never shorter.
pub(super) fn note_refusal(octets: &mut [u8], keep: &mut usize, txn: Txn, refusal: NodeRefusal) {
    let mut frame = Vec::with_capacity(REFUSED_FRAME_LEN);
    encode_refused(&mut frame, txn, refusal);
    octets[*keep..*keep + frame.len()].copy_from_slice(&frame);
    *keep += frame.len();
}
