//! Notes of mailboxes whose index may be behind.

use std::sync::mpsc::{Receiver, Sender, channel};

use vere_store::MailboxId;

/// Messages unknown to every segment from which on a new segment is worth while.
pub(crate) const BEHIND_MAX: usize = 64;
/// Messages read for one key, unknown to every segment, from which on a new segment is worth while.
pub(crate) const MISSED_MAX: usize = 8;

/// A mailbox whose index may be behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaleIndex {
    pub(crate) id: MailboxId,
    /// Number of messages unknown to every segment from which on a new segment is worth while.
    pub(crate) least: usize,
    /// The mailbox's next UID, if known: it shows that most changes are of no interest to the index.
    pub(crate) uid_next: Option<u32>,
}

/// Sends changed mailboxes to the indexing thread.
#[derive(Debug, Clone)]
pub(crate) struct Indexer(Sender<StaleIndex>);

impl Indexer {
    /// Returns the two ends of a channel for changes.
    pub(crate) fn channel() -> (Self, Receiver<StaleIndex>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// Reports a changed mailbox to be indexed, now or soon; a mailbox without a next UID is gone.
    pub(crate) fn changed(&self, id: MailboxId, uid_next: Option<u32>) {
        // No thread receives changes when the role ends.
        let _ = self.0.send(StaleIndex {
            id,
            least: BEHIND_MAX,
            uid_next,
        });
    }

    /// Reports a mailbox of which messages were read because no segment knows them.
    pub(crate) fn missed(&self, id: MailboxId) {
        let _ = self.0.send(StaleIndex {
            id,
            least: MISSED_MAX,
            uid_next: None,
        });
    }
}
