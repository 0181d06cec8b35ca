//! A block of an owner's frames: what holds for it, and what it came to.

use vere_spoolwire::{CloseReason, Refusal, Request, Seq, Txn, WireError};

use super::store::Store;

/// What the owner's frames came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// More octets are needed.
    Incomplete,
    /// A request; to be answered before going on.
    Request(Seq, Request),
    /// Everything goes, and transactions begin after this one.
    Reset(Txn),
}

/// What the connection is to be told about mutations.
#[derive(Debug, Default)]
pub(super) struct Done {
    /// Whether any had been done before.
    pub(super) repeated: bool,
    /// Refusals among these.
    pub(super) again: Vec<(Txn, Refusal)>,
}

impl Done {
    /// Notes a mutation that had been done before, and its refusal.
    pub(super) fn repeat(&mut self, store: &Store, txn: Txn) {
        self.repeated = true;
        self.again
            .extend(store.refusal(txn).map(|refusal| (txn, refusal)));
    }
}

/// What holds for a block of frames.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) frame_max: usize,
    /// No new records, for want of disk.
    pub(super) disk_full: bool,
    /// Whether refusals are kept in the log.
    pub(super) logged: bool,
    /// Whether the log says that the group is whole when its owner says so.
    pub(super) completes: bool,
}

/// What a connection that sent such octets is told.
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
