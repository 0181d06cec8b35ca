//! A full local disk: what has changed already waits in memory for room, programs are refused further changes meanwhile, and
//! nothing is sent. As soon as there is room again, the volume goes on.

use std::time::Duration;

use vere_ports::storage::Storage;

use super::state::Volume;
use super::step::{Notice, Step};

/// Time between looks for room.
const RETRY: Duration = Duration::from_secs(1);

impl<S: Storage> Volume<S> {
    /// Notes that the disk is full, if so.
    pub(super) fn note_local_room(&mut self) {
        if self.journal.is_full() && self.journal_at.is_none() {
            self.journal_at = Some(self.now.steady + RETRY);
            self.steps.push_back(Step::Log(Notice::DiskFull));
        }
    }

    /// Looks for room on the local disk.
    pub(super) fn retry_journal(&mut self) {
        self.note_local_room();
        if self.journal_at.is_none_or(|at| at > self.now.steady) || self.read_only.is_some() {
            return;
        }
        match self.journal.retry() {
            Ok(false) => self.journal_at = Some(self.now.steady + RETRY),
            Ok(true) => {
                self.journal_at = None;
                self.steps.push_back(Step::Log(Notice::DiskHasRoom));
                self.sync_soon();
                self.build_ready();
                self.upload_more();
                self.resume_blocked();
            }
            Err(error) => self.fail(Notice::Journal(error.to_string())),
        }
    }
}
