//! The index of all mailboxes, shared by connections and the indexing thread.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_disk::log::Directory as LogDirectory;
use vere_search::Index;
use vere_store::MailboxId;
use vere_units::LogId;

use super::segments::Segments;
use super::summaries::Columns;
use super::turns::Turns;
use super::verdicts::Verdicts;
use crate::private;

/// Folder of the index, beside the log.
pub(crate) const FOLDER: &str = "search";

/// The index of all mailboxes, shared by searches and the indexing thread.
#[derive(Debug, Clone)]
pub(crate) struct SharedIndex {
    index: Arc<Mutex<Index<LogDirectory>>>,
    columns: Columns,
    verdicts: Verdicts,
    turns: Turns,
}

impl SharedIndex {
    /// Opens or makes the index beside a store's log.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn open(store: &Path, log: LogId) -> io::Result<Self> {
        let folder = store.join(FOLDER);
        private::make(&folder)?;
        let index = Index::open(LogDirectory::open(&folder)?, log)?;
        Ok(Self {
            index: Arc::new(Mutex::new(index)),
            columns: Columns::default(),
            verdicts: Verdicts::default(),
            turns: Turns::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Index<LogDirectory>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the verdicts remembered of earlier searches.
    pub(crate) const fn verdicts(&self) -> &Verdicts {
        &self.verdicts
    }

    /// Returns the turns of searches.
    pub(crate) const fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Returns the header fields kept for repeated queries.
    pub(crate) const fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the segments of a mailbox, if the segments are open and the lock is free.
    pub(crate) fn segments_at_hand(&self, id: MailboxId) -> Option<Segments> {
        self.index.try_lock().ok()?.open_segments(id)
    }

    /// Returns the segments of a mailbox; none, and an error in the log, if the segments cannot be read.
    pub(crate) fn segments(&self, id: MailboxId) -> Segments {
        self.lock().segments(id).unwrap_or_else(|error| {
            tracing::error!(%error, mailbox = id.0, "the search index cannot be read");
            Vec::new()
        })
    }

    /// Notes that a segment did not answer: damaged segments are removed, and built again.
    pub(crate) fn doubt(&self, id: MailboxId) {
        if let Err(error) = self.lock().doubt(id) {
            tracing::error!(%error, mailbox = id.0, "the search index cannot be looked at");
        }
    }
}
