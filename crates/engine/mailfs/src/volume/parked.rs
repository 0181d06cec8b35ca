//! Calls, answers and commits that wait for pages. Whatever changes rows reads every row before, so that nothing is half done
//! when a page is missing.

use super::state::pages::{PARKED_MAX, PageKey, Parked, Rows};
use super::state::reads::WHOLE_MAX;
use super::state::uploads::Upload;
use super::state::{Asked, Late, Volume};
use super::step::{Notice, Step};
use crate::rows::{Key, facts_prefix};
use std::collections::BTreeSet;
use vere_ports::files::{Call, CallId, Caller, Errno, Inode};
use vere_ports::mail_accounts::{Answer, Fault, Urgency};
use vere_ports::storage::Storage;

impl<S: Storage> Volume<S> {
    /// Carries a call out, or has the call wait for pages. Calls whose pages are there wait for nobody, but for an earlier call
    /// on their own file.
    pub(super) fn begin_call(&mut self, id: CallId, caller: Caller, call: Call) {
        let inode = self.subject(&call);
        let is_change = super::calls::changes(&call);
        let behind = self.pages.parked.len();
        let pages = if self.pages.holds_up(behind, inode, is_change) {
            BTreeSet::new()
        } else {
            match self.rows_of_call(&call) {
                Rows::Here => return self.execute(id, caller, call),
                Rows::Lost => {
                    return self.reply_lost(id, inode, "a page of rows: no account has it");
                }
                Rows::Awaited(pages) => pages,
            }
        };
        let parked = Parked {
            id,
            caller,
            call,
            inode,
            is_change,
            pages,
        };
        if behind < PARKED_MAX {
            self.pages.parked.push_back(parked);
        } else {
            self.reply(id, Err(Errno::NoMem));
            self.end_parked(parked);
        }
    }

    fn rows_of_call(&mut self, call: &Call) -> Rows {
        if !self.has_pages() || self.files.touch(call) {
            return Rows::Here;
        }
        self.fetch_missing(Urgency::Waited)
    }

    /// The file that a call is about, whose calls keep their order.
    fn subject(&self, call: &Call) -> Option<Inode> {
        match call {
            Call::GetAttributes { inode }
            | Call::SetAttributes { inode, .. }
            | Call::Open { inode, .. }
            | Call::SetXattr { inode, .. }
            | Call::GetXattr { inode, .. }
            | Call::ListXattrs { inode }
            | Call::RemoveXattr { inode, .. } => Some(*inode),
            Call::Read { handle, .. }
            | Call::Write { handle, .. }
            | Call::Flush { handle }
            | Call::Release { handle }
            | Call::Fsync { handle, .. }
            | Call::Allocate { handle, .. }
            | Call::Seek { handle, .. }
            | Call::CopyRange { to: handle, .. } => self.files.inode_of(*handle),
            _ => None,
        }
    }

    /// Pages have come, or are lost: whoever waited goes on.
    pub(super) fn pages_came(&mut self) {
        self.run_parked();
        for (number, names) in std::mem::take(&mut self.uploads.late) {
            self.chunks_named(number, names);
        }
        for late in std::mem::take(&mut self.late) {
            self.take_answer(late.account, late.asked, late.answer);
        }
        let was_far_behind = self.is_far_behind();
        self.go_on_following();
        if was_far_behind {
            self.advance_chain();
        }
        self.build_ready();
        self.tend_checkpoints();
        self.make_copies();
        self.scan_packs();
    }

    /// Carries out calls whose pages have come.
    pub(super) fn run_parked(&mut self) {
        let mut from = 0;
        while let Some(place) = self.pages.next_ready(from) {
            let Some(mut parked) = self.pages.parked.remove(place) else {
                return;
            };
            match self.rows_of_call(&parked.call) {
                Rows::Here => {
                    // The call may free an earlier one of its file.
                    from = 0;
                    self.execute(parked.id, parked.caller, parked.call);
                }
                Rows::Lost => {
                    self.reply_lost(parked.id, parked.inode, "a page of rows: no account has it");
                }
                Rows::Awaited(pages) => {
                    parked.pages = pages;
                    // A lost page may have ended calls in front of the present call.
                    let place = place.min(self.pages.parked.len());
                    self.pages.parked.insert(place, parked);
                    from = place.saturating_add(1);
                }
            }
        }
    }

    /// A call has waited for too long, and is answered so.
    pub(super) fn unpark(&mut self, call: CallId) {
        for parked in self.pages.take(|parked| parked.id == call) {
            self.reply(call, Err(Errno::Io));
            self.end_parked(parked);
        }
    }

    /// Calls that need a lost page fail.
    pub(super) fn fail_parked(&mut self, page: PageKey, reason: &str) {
        for parked in self.pages.take(|parked| parked.pages.contains(&page)) {
            self.reply_lost(parked.id, parked.inode, reason);
            self.end_parked(parked);
        }
    }

    /// A close takes place without its pages too: nobody else closes the file. The rows of a file without names then end with
    /// the next mount.
    fn end_parked(&mut self, parked: Parked) {
        if matches!(parked.call, Call::Release { .. }) {
            self.execute(parked.id, parked.caller, parked.call);
        }
    }

    fn reply_lost(&mut self, id: CallId, inode: Option<Inode>, reason: &str) {
        self.steps.push_back(Step::Log(Notice::Unreadable {
            inode: inode.map_or(0, |inode| inode.0),
            offset: 0,
            reason: reason.to_owned(),
        }));
        self.reply(id, Err(Errno::Io));
    }

    /// Whether the rows for an answer are there; else the answer waits.
    pub(super) fn is_late(
        &mut self,
        account: u16,
        asked: Asked,
        answer: Result<Answer, Fault>,
    ) -> Option<(Asked, Result<Answer, Fault>)> {
        if !self.has_pages() || self.has_rows_for(&asked) {
            return Some((asked, answer));
        }
        self.late.push(Late {
            account,
            asked,
            answer,
        });
        None
    }

    fn has_rows_for(&mut self, asked: &Asked) -> bool {
        match asked {
            Asked::Pack(number, _) => {
                let upload = self.uploads.packs.get(&number.0);
                let cuts = upload.into_iter().flat_map(Upload::cuts);
                let inodes: BTreeSet<Inode> = cuts.map(|cut| cut.inode).collect();
                self.has_contents(inodes)
            }
            Asked::Copy(pack, _) | Asked::Original(pack, ..) => self.has_pack(pack.0),
            Asked::Chunk(chunk, _) | Asked::FindPack(chunk, _) => self.has_pack(chunk.pack.0),
            _ => true,
        }
    }

    /// Whether the row of a pack is there, or never will be.
    pub(super) fn has_pack(&mut self, pack: u64) -> bool {
        let tree = self.files.tree();
        tree.take_missing();
        let _ = tree.get(&Key::Pack(pack).encode());
        self.is_settled(Urgency::Background)
    }

    /// Whether the rows of facts are there, or never will be.
    pub(super) fn has_facts(&mut self) -> bool {
        let tree = self.files.tree();
        tree.take_missing();
        let _ = tree.keys(&facts_prefix());
        self.is_settled(Urgency::Waited)
    }

    /// Whether the rows of the packs with a range of a file are there, or never will be.
    pub(super) fn has_packs(&mut self, inode: Inode, offset: u64, length: u64) -> bool {
        self.files.tree().take_missing();
        self.files.touch_packs(inode, offset, length);
        self.is_settled(Urgency::Ahead)
    }

    /// Whether the rows of a short file's content are there, or never will be.
    pub(super) fn has_whole(&mut self, inode: Inode) -> bool {
        self.files.tree().take_missing();
        let whole = self.files.plan_whole(inode, WHOLE_MAX);
        self.is_settled(Urgency::Ahead)
            && whole.is_none_or(|whole| self.has_packs(inode, 0, whole.octets()))
    }

    /// Whether every row is there that tells whether the volume has chunks, or never will be: rows of packs, and of the files
    /// whose content is placed then.
    pub(super) fn has_hints(&mut self, packs: Vec<u64>, inodes: BTreeSet<Inode>) -> bool {
        if !self.has_pages() {
            return true;
        }
        let tree = self.files.tree();
        tree.take_missing();
        for pack in packs {
            let _ = tree.get(&Key::Pack(pack).encode());
            let _ = tree.get(&Key::Tombstone(pack).encode());
        }
        for inode in inodes {
            self.files.touch_stored(inode);
        }
        self.is_settled(Urgency::Synced)
    }

    /// Whether the stored contents of files are there, or never will be.
    pub(super) fn has_contents(&mut self, inodes: impl IntoIterator<Item = Inode>) -> bool {
        if !self.has_pages() {
            return true;
        }
        self.files.tree().take_missing();
        for inode in inodes {
            self.files.touch_stored(inode);
        }
        self.is_settled(Urgency::Synced)
    }

    /// Whether every row of the next commit is there, or never will be.
    pub(super) fn has_commit(&mut self) -> bool {
        if !self.has_pages() {
            return true;
        }
        self.files.tree().take_missing();
        for inode in self.commits.changed.keys() {
            self.files.touch_stored(*inode);
        }
        for key in &self.commits.pending {
            let _ = self.files.tree().get(key);
            // Merges of later commits want the earlier values of the chain.
            let _ = self.files.tree().in_chain(key);
        }
        self.is_settled(Urgency::Synced)
    }

    /// A lost page is waited for by nobody: the operation itself meets the error.
    fn is_settled(&mut self, urgency: Urgency) -> bool {
        !matches!(self.fetch_missing(urgency), Rows::Awaited(_))
    }
}
