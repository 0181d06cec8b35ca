//! A full local disk: what has changed already waits in memory for room, programs are refused further changes meanwhile, and
//! nothing is sent. As soon as there is room again, the volume goes on; a volume that is read-only for another reason brings
//! the changes that were accepted before to the disk and to the servers.

use std::io;
use std::time::Duration;

use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::record::Part;
use super::state::{RESERVED, Volume};
use super::step::{Notice, Step};

/// Time between looks for room.
const RETRY: Duration = Duration::from_secs(1);
/// Numbers of mails that are reserved ahead of their use: packs of the changes that wait at once.
const SPARE: u64 = RESERVED / 2;

impl<S: Storage> Volume<S> {
    /// Notes that the disk is full, if so.
    pub(super) fn note_local_room(&mut self) {
        if self.journal.is_full() && self.journal_at.is_none() {
            self.journal_at = Some(self.now.steady + RETRY);
            self.steps.push_back(Step::Log(Notice::DiskFull));
        }
    }

    /// Whether the disk lacks room, and is well but for that.
    fn lacks_room(&self) -> bool {
        self.journal.is_full() && !self.journal.has_failed()
    }

    /// Brings the record about a commit to the disk. On a full disk the commit waits: the log gets nothing whose beginning the
    /// journal lacks.
    pub(super) fn sync_to_send(&mut self) -> io::Result<()> {
        match self.journal.sync() {
            Err(_) if self.lacks_room() => {
                self.chain.hold(true);
                self.note_local_room();
                Ok(())
            }
            synced => synced,
        }
    }

    /// Notes in the journal which numbers may be in use. Returns whether the disk has the note; without room no further numbers
    /// are given.
    pub(super) fn reserve(&mut self) -> bool {
        if self.is_registering() {
            // Another machine may take the number first; the journal gets the number with the registration.
            self.files.numbers().extend(self.block_end);
            return true;
        }
        let part = Part::Reserved {
            writer: self.writer,
            sequence: self.sequence.1,
            block: self.block_end,
        };
        // A number taken back by a power cut would be given twice.
        let kept = self.journal.append(&[part]);
        match kept.and_then(|_| self.journal.sync()) {
            Ok(()) => {
                self.files.numbers().extend(self.block_end);
                true
            }
            Err(_) if self.lacks_room() => {
                self.note_local_room();
                false
            }
            Err(error) => {
                self.fail(Notice::Journal(error.to_string()));
                false
            }
        }
    }

    /// Reserves numbers of mails before the last ones are in use. Returns whether there are enough for the changes that wait.
    pub(super) fn has_numbers(&mut self) -> bool {
        let (next, reserved) = self.sequence;
        if next.saturating_add(SPARE) < reserved {
            return true;
        }
        self.reserve_from(next)
    }

    /// Reserves the numbers from one on.
    pub(super) fn reserve_from(&mut self, next: u64) -> bool {
        let before = self.sequence.1;
        self.sequence.1 = next.saturating_add(RESERVED);
        let is_kept = self.reserve();
        if !is_kept {
            self.sequence.1 = before;
        }
        is_kept
    }

    /// When room on the local disk is looked for. A volume that is read-only for another reason looks too: changes that were accepted
    /// wait for room. A failed disk is left alone.
    pub(super) fn local_room_at(&self) -> Option<Timestamp> {
        let is_broken = self.read_only.is_some() && self.journal.has_failed();
        self.journal_at.filter(|_| !is_broken)
    }

    /// Looks for room on the local disk.
    pub(super) fn retry_journal(&mut self) {
        self.note_local_room();
        if self.local_room_at().is_none_or(|at| at > self.now.steady) {
            return;
        }
        match self.journal.retry() {
            Ok(false) => self.journal_at = Some(self.now.steady + RETRY),
            Ok(true) => {
                self.journal_at = None;
                if let Err(error) = self.let_commits_go() {
                    self.fail(Notice::Journal(error.to_string()));
                    return;
                }
                self.steps.push_back(Step::Log(Notice::DiskHasRoom));
                self.sync_soon();
                self.build_ready();
                self.upload_more();
                self.resume_blocked();
            }
            Err(error) => self.fail(Notice::Journal(error.to_string())),
        }
    }

    /// Sends the commits that have waited for the disk, unless the mount has lost the right to send.
    fn let_commits_go(&mut self) -> io::Result<()> {
        if self.chain.is_held() {
            self.journal.sync()?;
            if self.is_stopped() {
                return Ok(());
            }
            self.chain.hold(false);
            self.advance_chain();
        }
        Ok(())
    }
}
