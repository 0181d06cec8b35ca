//! Notices to the store and its threads, which nobody waits for, and notices of changes.

use std::sync::Arc;

use vere_store::MailboxId;

use super::{Job, Keeper, Message};
use crate::watchers::Watch;

impl Keeper {
    /// Asks the indexer to index messages of a mailbox that the index was found to lack.
    pub(crate) fn index_missed(&self, id: MailboxId) {
        self.indexer.missed(id);
    }

    /// Announces that the messages of a mailbox are needed soon: the store reads the mailbox ahead while idle.
    pub(crate) fn wanted_soon(&self, id: MailboxId) {
        let job: Job = Box::new(move |owner| owner.used.soon(id));
        let _ = self.sender.send(Message::Job(job));
    }

    /// Returns a watch of a mailbox, which sees changes until it is dropped.
    pub(crate) fn watch(&self, mailbox: MailboxId) -> Watch {
        Watch::new(Arc::clone(&self.watchers), mailbox)
    }
}
