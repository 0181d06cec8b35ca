//! A block of an owner's frames: conditions and outcome.

use vere_spoolwire::{CloseReason, NodeRefusal, Request, Seq, Txn, WireError};

use super::store::Store;

/// Outcome of processing an owner's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// More octets are needed.
    Incomplete,
    /// A request, to be answered before the next frame.
    Request(Seq, Request),
    /// The group drops everything, and transactions begin after this one.
    Reset(Txn),
}

/// Results of mutations that the next acknowledgement must contain.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Whether a mutation was a repetition.
    pub(super) repeated: bool,
    /// Refusals of repeated mutations.
    pub(super) again: Vec<(Txn, NodeRefusal)>,
}

impl Done {
    /// Notes a repeated mutation and its earlier refusal.
    pub(super) fn repeat(&mut self, store: &Store, txn: Txn) {
        self.repeated = true;
        self.again
            .extend(store.refusal(txn).map(|refusal| (txn, refusal)));
    }
}

/// Conditions for a block of frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) frame_max: usize,
    /// Whether the disk has no space for new records.
    pub(super) disk_full: bool,
    /// Whether the log keeps refusals.
    pub(super) logged: bool,
    /// Whether the log records the completion of a rebuild when the owner sends COMPLETE.
    pub(super) completes: bool,
}

/// Reason for closing a connection after malformed input.
pub(super) const fn reason(error: WireError) -> CloseReason {
    match error {
        WireError::Length { .. } => CloseReason::TooLong,
        WireError::Checksum => CloseReason::Checksum,
        WireError::Earlier => CloseReason::Version,
        WireError::Operation(_) | WireError::Reserved | WireError::Layout(_) => {
            CloseReason::Malformed
        }
    }
}
