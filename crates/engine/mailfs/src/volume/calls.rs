//! Calls: the tree answers, the journal keeps, and some wait for accounts.

use std::collections::BTreeSet;
use std::io;

use vere_ports::files::{Call, CallId, Caller, Errno, Inode, RenameMode, Reply};
use vere_ports::mail_accounts::Urgency;
use vere_ports::storage::Storage;

use super::own_slot::ends_sending;
use super::record::Part;
use super::state::commits::QUIET_MAX;
use super::state::{PENDING_MAX, PENDING_OCTETS_MAX, RESERVED, SENDING_MAX, UNSETTLED_MAX, Volume};
use super::step::{Moment, Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::content::CHUNK_MAX;
use crate::format::PackNumber;
use crate::posix::{ContentChange, Outcome};
use crate::rows::Key;
use crate::tree::Change;

/// Octets of a file that wait before the file's upload begins.
const BEGIN_UPLOAD: u64 = 4 << 20;
/// Octets of the journal that are synced without a wait for the time of a sync: a disk of 100 MB/s has them within 80 ms.
const SYNC_OCTETS: u64 = 8 << 20;
/// Octets that are cut at once: above the longest chunk.
const UPLOAD_MIN: u64 = CHUNK_MAX as u64 + (1 << 20);

impl<S: Storage> Volume<S> {
    /// A program calls.
    pub fn call(&mut self, now: Moment, id: CallId, caller: Caller, call: Call) {
        self.at(now);
        self.begin_waiting(id);
        self.admit(id, caller, call);
    }

    /// Carries a call out, or has a change wait for room.
    pub(super) fn admit(&mut self, id: CallId, caller: Caller, call: Call) {
        if changes(&call) && (!self.blocked.is_empty() || self.is_full()) {
            self.blocked.push_back((id, caller, call));
            if self.commits.wants.is_empty() {
                // A commit makes room, and without a wish for a commit none may be due.
                self.want_all(Vec::new());
            }
            return;
        }
        self.begin_call(id, caller, call);
    }

    /// Every change so far shall be on the servers; the reply is [`Reply::Done`].
    pub fn sync(&mut self, now: Moment, id: CallId) {
        self.at(now);
        self.begin_waiting(id);
        self.want_all(vec![(id, Reply::Done)]);
    }

    /// Whether changes have to wait until servers have taken earlier ones.
    fn is_full(&self) -> bool {
        self.is_registering()
            || self.holds_changes()
            || self.files.unsent().octets() >= self.terms.unsent_max
            || self.commits.pending() >= PENDING_MAX
            || self.commits.rows_unsettled() >= UNSETTLED_MAX
            || self.commits.pending_octets >= PENDING_OCTETS_MAX
    }

    /// Calls that waited go on while there is room.
    pub(super) fn resume_blocked(&mut self) {
        while !self.blocked.is_empty() && !self.is_full() {
            if let Some((id, caller, call)) = self.blocked.pop_front()
                && self.deadlines.is_waiting(id)
            {
                self.begin_call(id, caller, call);
            }
        }
    }

    /// Carries a call out whose rows are there.
    pub(super) fn execute(&mut self, id: CallId, caller: Caller, call: Call) {
        if self.read_only.is_some() && changes(&call) {
            if self.holds_changes() {
                self.blocked.push_back((id, caller, call));
            } else {
                self.reply(id, Err(Errno::RoFs));
            }
            return;
        }
        if let Some(errno) = self.without_room(&call) {
            self.reply(id, Err(errno));
            return;
        }
        if self.journal.is_full() && changes(&call) {
            self.note_local_room();
            self.reply(id, Err(Errno::NoSpc));
            return;
        }
        let waits = self.terms.strong && is_durable_when_strong(&call) && !self.ends_clean(&call);
        let closed = match &call {
            Call::Release { handle } => self.files.inode_of(*handle),
            _ => None,
        };
        let opened = match &call {
            Call::Open { inode, flags } if flags.read && !flags.truncate => Some(*inode),
            _ => None,
        };
        let read = matches!(call, Call::Read { .. }).then(|| (caller, call.clone()));
        self.note_barrier(&call);
        self.reserve_homes();
        let outcome = self.files.call(caller, call, self.now.wall);
        let was_full = self.journal.is_full();
        if !self.keep() {
            self.reply(id, Err(Errno::Io));
            return;
        }
        if self.journal.is_full() && !was_full {
            // The change stands, and waits for room; a kill would lose it.
            self.note_local_room();
            self.reply(id, Err(Errno::NoSpc));
            return;
        }
        if let Some(inode) = closed {
            self.reads.closed(inode);
        }
        match outcome {
            Outcome::Reply(Ok(reply)) if waits => self.want_all(vec![(id, reply)]),
            Outcome::Reply(reply) => {
                let opened = opened.filter(|_| reply.is_ok());
                self.reply(id, reply);
                if let Some(inode) = opened {
                    self.fetch_opened(inode);
                }
            }
            Outcome::Read(plan) => self.read((id, read), &plan),
            Outcome::Sync {
                inode: Some(inode),
                reply,
            } => {
                self.want(BTreeSet::from([inode]), vec![(id, reply)]);
            }
            Outcome::Sync { inode: None, reply } => self.want_all(vec![(id, reply)]),
        }
    }

    /// The content of a file with a new name in place of another file is sent before the rename.
    fn note_barrier(&mut self, call: &Call) {
        if let Call::Rename {
            parent,
            name,
            new_parent,
            new_name,
            mode: RenameMode::Replace,
        } = call
            && let Ok(Some(_)) = self.files.inode_at(*new_parent, new_name)
            && let Ok(Some(inode)) = self.files.inode_at(*parent, name)
            && !is_broken(Breakage::RenameBeforeContent)
        {
            self.commits.barrier(inode, self.journal.position());
        }
    }

    /// Writes the changes of the last call into the journal. Returns whether the journal has the changes.
    pub(super) fn keep(&mut self) -> bool {
        let rows = self.files.tree_mut().take_changes();
        let contents = self.files.take_content_changes();
        // The next volume ends a file again that ends here without its journal.
        if rows.is_empty() && contents.is_empty() || self.is_retired() {
            return true;
        }
        self.note_touched(&rows);
        let mut touched: Vec<Inode> = contents.iter().map(ContentChange::inode).collect();
        touched.dedup();
        let keys: Vec<Vec<u8>> = rows.iter().map(|change| change.key.clone()).collect();
        let octets = rows.iter().map(row_octets).sum();
        let bases = self.bases_of(&rows);
        // The rows of extents follow from the changes of content.
        let rows = rows
            .into_iter()
            .filter(|change| !is_extents(&change.key))
            .map(Part::Row);
        let parts: Vec<Part> = contents
            .into_iter()
            .map(Part::Content)
            .chain(bases)
            .chain(rows)
            .collect();
        let now = self.now.steady;
        match self.journal.append(&parts) {
            Ok(position) => {
                self.commits.rows(keys.into_iter(), position, now);
                self.commits.pending_octets = self.commits.pending_octets.saturating_add(octets);
                for inode in touched {
                    self.commits.content(inode, position, now);
                    self.upload_early(inode);
                }
                self.sync_soon();
                self.sync_much();
                true
            }
            Err(error) => {
                self.fail(Notice::Journal(error.to_string()));
                false
            }
        }
    }

    /// A file with much to send begins while the program still writes.
    fn upload_early(&mut self, inode: Inode) {
        if self.files.unsent_octets_of(inode) < BEGIN_UPLOAD || self.uploads.octets() >= SENDING_MAX
        {
            return;
        }
        if self.is_unconfirmed() || !self.has_numbers() {
            return;
        }
        // Too few octets for a certain cut are not searched again with each write.
        if self.buffers().uncut(inode) < UPLOAD_MIN {
            return;
        }
        let cuts = self.cut(inode, true);
        self.upload(cuts, Urgency::Background);
    }

    /// Files with much to send go on when packs are stored.
    pub(super) fn upload_more(&mut self) {
        let changed: Vec<Inode> = self.commits.changed().collect();
        for inode in changed {
            self.upload_early(inode);
        }
    }

    /// Rows changed by the engine itself, without a call.
    pub(super) fn collect_rows(&mut self) {
        let changes = self.files.tree_mut().take_changes();
        self.note_touched(&changes);
        for change in changes {
            self.commits.quietly(change.key);
        }
    }

    /// Changes a row of the volume, to go with the next commit.
    pub(super) fn put_row(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.change_row(key, Some(value));
    }

    /// Changes or removes a row of the volume, to go with the next commit.
    pub(super) fn change_row(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.change_rows(vec![Change { key, value }]);
    }

    /// Changes or removes rows, all with the next commit: the journal has all of them or none.
    pub(super) fn change_rows(&mut self, rows: Vec<Change>) {
        let parts: Vec<Part> = rows.iter().cloned().map(Part::Row).collect();
        let kept = self.journal.append(&parts);
        for row in rows {
            let key = row.key.clone();
            self.note_row(&key);
            if let Err(error) = self.files.change(row) {
                self.fail(Notice::Rows(error));
            }
            self.commits.quietly(key);
        }
        if self.commits.pending() >= QUIET_MAX {
            self.commits.since.get_or_insert(self.now.steady);
        }
        if let Err(error) = kept {
            self.fail(Notice::Journal(error.to_string()));
        }
    }

    /// The number of the next mail.
    pub(super) fn next_pack(&mut self) -> PackNumber {
        let (next, reserved) = self.sequence;
        if next >= reserved && !self.reserve_from(next) {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            self.fail(Notice::Journal(full.to_string()));
        }
        self.sequence.0 = next.saturating_add(1);
        PackNumber::new(self.writer, next).unwrap_or(PackNumber(u64::MAX))
    }

    /// Reserves further homes before the reserved ones are in use.
    pub(super) fn reserve_homes(&mut self) {
        if self.files.numbers().is_short() && !self.journal.is_full() {
            self.block_end = self
                .block_end
                .saturating_add(u32::try_from(RESERVED).unwrap_or(0));
            self.reserve();
        }
    }

    /// Has the journal synced within the volume's time.
    pub(super) fn sync_soon(&mut self) {
        let at = self.now.steady + self.terms.journal_sync;
        self.sync_at.get_or_insert(at);
    }

    /// Has many octets synced at once, by the thread of the disk: a later sync, on which the engine waits at the end of a segment
    /// and before a commit, finds little to do.
    fn sync_much(&mut self) {
        let position = self.journal.position();
        if position.saturating_sub(self.synced_to) >= SYNC_OCTETS {
            self.synced_to = position;
            let file = self.journal.take_unsynced();
            self.steps.extend(file.map(Step::Sync));
        }
    }

    /// The volume takes no more changes; whoever waits for the servers is told. The first reason counts, unless a later one ends
    /// the right to send.
    pub(super) fn fail(&mut self, notice: Notice) {
        let ends = ends_sending(&notice) && !self.is_stopped();
        if self.read_only.is_some() && !ends {
            return;
        }
        self.steps.push_back(Step::Log(notice.clone()));
        self.doubt_memory(&notice);
        self.note_stop(&notice);
        self.read_only = Some(notice);
        if self.holds_changes() {
            // Whoever waits goes on in the next volume.
            return;
        }
        for call in self.commits.take_waiters() {
            self.reply(call, Err(Errno::Io));
        }
        self.refuse_blocked();
    }
}

/// Octets of a row in a commit, nearly.
fn row_octets(change: &Change) -> usize {
    let value = change.value.as_ref().map_or(0, Vec::len);
    change.key.len().saturating_add(value).saturating_add(8)
}

pub(super) fn is_extents(key: &[u8]) -> bool {
    matches!(Key::decode(key), Ok(Key::Extents { .. }))
}

/// Whether a call may change the volume.
pub(super) const fn changes(call: &Call) -> bool {
    match call {
        Call::SetAttributes { .. }
        | Call::MakeNode { .. }
        | Call::MakeFolder { .. }
        | Call::Symlink { .. }
        | Call::Link { .. }
        | Call::Unlink { .. }
        | Call::RemoveFolder { .. }
        | Call::Rename { .. }
        | Call::Create { .. }
        | Call::Write { .. }
        | Call::SetXattr { .. }
        | Call::RemoveXattr { .. }
        | Call::Allocate { .. }
        | Call::CopyRange { .. } => true,
        Call::Open { flags, .. } => flags.truncate,
        _ => false,
    }
}

/// Whether a call waits for the servers in a volume of strong consistency.
const fn is_durable_when_strong(call: &Call) -> bool {
    match call {
        Call::Flush { .. } => true,
        // Octets wait for the close.
        Call::Write { .. } => false,
        other => changes(other),
    }
}
