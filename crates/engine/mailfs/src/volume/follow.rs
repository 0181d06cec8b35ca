//! Commits of other mounts: noticed, read, and applied below the changes of the mount.

use std::collections::BTreeSet;
use std::time::Duration;

use hashbrown::HashSet;
use vere_ports::files::{Errno, Invalidate};
use vere_ports::mail_accounts::{AccountId, Answer, Fault, Request, Urgency};
use vere_ports::storage::Storage;

use super::accounts::{LOG_MAILBOX, mailbox_name};
use super::calls::is_extents;
use super::chain::Child;
use super::events::RETRY;
use super::found::{Found, is_own_row, own_row};
use super::record::{Part, Won};
use super::state::follow::{COMING_MAX, Coming};
use super::state::pages::Rows;
use super::state::{Asked, Volume};
use super::step::{Notice, Step};
use crate::format::commit::RowChange;
use crate::format::{Head, Kind, mail};
use crate::rows::{Key, slots_prefix};
use crate::tree::Change;

/// How soon after a change the log is watched again.
const WATCH_AGAIN: Duration = Duration::from_secs(1);

impl<S: Storage> Volume<S> {
    /// A mail of the log with the subject of a commit is read, or left alone.
    pub(super) fn judge_answered(&mut self, uid: u32, answer: Result<Answer, Fault>) {
        let child = match answer {
            Ok(Answer::Read(parts)) => {
                let body = parts.into_iter().next().unwrap_or_default();
                Some(self.commit_of(uid, &body))
            }
            Ok(_) => {
                self.retry_at = Some(self.now.steady + RETRY);
                self.chain.gone(uid);
                self.advance_chain();
                return;
            }
            Err(fault) => {
                self.account_failed(self.terms.lead, &fault);
                None
            }
        };
        self.chain.judged(uid, child);
        self.advance_chain();
    }

    pub(super) fn commit_of(&mut self, uid: u32, body: &[u8]) -> Option<Child> {
        let sealed = mail::unwrap(body, self.lead_encoding());
        let found = sealed.and_then(|sealed| {
            let seals = (&*self.seals.keys, self.seals.volume);
            Ok((Found::of_sealed(uid, &sealed, seals)?, sealed))
        });
        match found {
            Ok((found, _)) if !self.epochs.allow(found.head.epoch) => None,
            Ok((found, sealed)) => {
                let child = self.child_of(&found);
                self.heed_lead(&found);
                self.memory
                    .stage(found.id(), found.covered_uid(), sealed.into());
                self.follow.put_outside(found, self.now.steady);
                Some(child)
            }
            Err(error) => {
                if self.needs_new_key(body) {
                    self.follow.unreadable = self.follow.unreadable.max(Some(uid));
                    self.stop_for_new_keys(0);
                }
                self.steps.push_back(Step::Log(Notice::Forged {
                    account: AccountId(self.terms.lead),
                    mailbox: mailbox_name(LOG_MAILBOX),
                    uid,
                    reason: error.to_string(),
                }));
                None
            }
        }
    }

    /// The mount stops where key slots were changed, and a commit behind, above this UID, is one of a key that the mount lacks:
    /// a commit of the mount could be no child of an unreadable commit.
    fn stop_for_new_keys(&mut self, above: u32) {
        if self.follow.slots_since.is_some() && self.follow.unreadable > Some(above) {
            self.fail(Notice::NewKeys);
        }
    }

    /// Whether an unreadable mail is a commit of a key unknown to the mount. The head is not sealed, so a stranger's mail
    /// or a damaged one is no reason to stop.
    fn needs_new_key(&self, body: &[u8]) -> bool {
        let body = mail::unwrap(body, self.lead_encoding());
        let Ok(head) = body.and_then(|body| Head::decode(&body)) else {
            return false;
        };
        let is_commit = head.kind == Kind::Commit && head.volume == self.seals.volume;
        is_commit && head.epoch > self.newest_epoch() && !self.seals.keys.has(head.epoch)
    }

    /// Commits outside the chain, as the log had them at the beginning.
    pub(super) fn follow_others(&mut self, outside: Vec<Found>) {
        for found in outside {
            let child = self.child_of(&found);
            self.chain.see(found.uid, child);
            self.follow.put_outside(found, self.now.steady);
        }
        self.follow.refresh_at = Some(self.now.steady + self.terms.refresh);
        self.watch();
    }

    /// A commit of another mount is in the chain.
    pub(super) fn followed(&mut self, won: Won) {
        self.memory.decided(won);
        self.lose_commits();
        let Some(outside) = self.follow.outside.remove(&won.commit) else {
            // Only more commits outside the chain than memory has come here.
            self.fail(Notice::Rows(Errno::NoMem));
            return;
        };
        let coming = self.coming(outside.found, won);
        self.comes(coming);
        self.go_on_following();
    }

    fn coming(&self, found: Found, won: Won) -> Coming {
        Coming {
            won,
            rows: found.rows(self.terms.lead),
            octets: found.octets,
            writer: found.head.pack.writer(),
            epoch: found.head.epoch,
            merged: found.record.merged,
            checkpoint: found.record.checkpoint,
            is_own_merge: false,
        }
    }

    pub(super) fn comes(&mut self, coming: Coming) {
        self.follow.coming.push_back(coming);
    }

    /// Whether too many commits of the chain wait, so further commits stay in the log.
    pub(super) fn is_far_behind(&self) -> bool {
        self.follow.coming.len() >= COMING_MAX
    }

    /// Whether the chain has commits not yet applied by the mount.
    pub(super) fn is_behind(&self) -> bool {
        !self.follow.coming.is_empty()
    }

    /// Commits of the chain above the base of the changes of the journal.
    pub(super) fn catch_up(&mut self, later: Vec<Found>, uid_validity: u32) {
        for found in later {
            let won = found.won(uid_validity);
            let coming = self.coming(found, won);
            self.comes(coming);
            self.chain.advance_to(won);
        }
    }

    /// Applies commits of the chain as far as their rows are there; those of missing pages wait.
    pub(super) fn go_on_following(&mut self) {
        if self.is_retired() {
            return;
        }
        while let Some(coming) = self.follow.coming.pop_front() {
            match self.follow_commit(&coming) {
                Ok(()) => self.has_followed(&coming),
                Err(Errno::Again) => {
                    self.follow.coming.push_front(coming);
                    // The next refresh asks again for a page of a failing account.
                    if self.fetch_missing(Urgency::Waited) == Rows::Lost {
                        self.fail(Notice::Behind);
                    }
                    return;
                }
                Err(error) => {
                    // A commit of the mount on top would take the other mount's changes back.
                    self.follow.coming.push_front(coming);
                    self.fail(Notice::Rows(error));
                    return;
                }
            }
        }
        self.build_ready();
        self.resume_blocked();
        self.tend_checkpoints();
    }

    fn has_followed(&mut self, coming: &Coming) {
        if self.is_registering() {
            self.register_again();
            self.want_all(Vec::new());
        } else if coming.writer == self.writer && !self.is_own(coming) {
            self.register(coming.won.commit);
        }
    }

    fn is_own(&self, coming: &Coming) -> bool {
        coming.is_own_merge || self.follow.own.contains(&coming.won.commit)
    }

    fn lose_commits(&mut self) {
        if self.chain.under_way() == 0 {
            return;
        }
        self.commits.lose(self.now.steady);
        self.follow.is_adopting = false;
        let own = self.commits.abandoned.iter().copied();
        self.follow.own.extend(own);
        let commits = &self.commits;
        self.chain.lose(|id| commits.is_stray(id));
    }

    /// Applies a commit of the chain that is not the next commit of the mount.
    fn follow_commit(&mut self, coming: &Coming) -> Result<(), Errno> {
        let won = coming.won;
        if self.follow.own.contains(&won.commit) {
            self.follow_own(coming)?;
        } else {
            self.follow_rows(won, &coming.rows)?;
            self.heed_leaving(&coming.rows);
            self.heed_lead_row(&coming.rows)?;
            self.heed_slots(&coming.rows);
        }
        self.follow.named(&coming.merged);
        let merged = &coming.merged;
        self.commits.abandoned.retain(|id| !merged.contains(id));
        // The next checkpoint covers the commit from here on, since its rows are there.
        let octets = usize::try_from(coming.octets).unwrap_or(usize::MAX);
        self.checkpoints.note(won, octets);
        self.checkpoints.note_rows(coming.rows.len());
        if !coming.is_own_merge {
            self.note_followed(coming);
        }
        self.follow_checkpoint(coming);
        Ok(())
    }

    /// A late commit of the mount: waiting changes lie on top.
    fn follow_own(&mut self, coming: &Coming) -> Result<(), Errno> {
        let tree = self.files.tree();
        tree.take_missing();
        for row in &coming.rows {
            tree.in_chain(&row.key)?;
        }
        let won = coming.won;
        self.commits.abandoned.retain(|id| *id != won.commit);
        self.confirm_rows(won, coming.rows.clone());
        // Rows of lost commits wait for nobody any more: whatever the chain lacks waits again.
        let local: BTreeSet<Vec<u8>> = self.files.tree().local_keys().map(Vec::from).collect();
        let follows = Part::Follows(self.noted(won));
        // The commit may be a partial one: a replay begins before.
        let keys = coming.rows.iter().map(|row| &row.key);
        let settled = keys.filter(|key| !local.contains(*key) && !is_extents(key));
        let voids = settled.cloned().map(Part::Drop);
        let noted: Vec<Part> = std::iter::once(follows).chain(voids).collect();
        let noted = self.journal.append(&noted);
        let position = noted.map_err(|_| Errno::Io)?;
        self.commits.wait_for(local, position, self.now.steady);
        Ok(())
    }

    /// The next checkpoint has the rows of commits of other mounts too.
    fn note_followed(&mut self, coming: &Coming) {
        self.epochs.floor = self.epochs.floor.max(coming.epoch);
        // An earlier epoch than the parent's is none for a commit.
        self.seals.epoch = self.seals.epoch.max(coming.epoch);
        let slots = slots_prefix();
        if coming.rows.iter().any(|row| row.key.starts_with(&slots)) {
            self.follow.slots_since = Some(self.newest_epoch());
            // The mount may have read the commit earlier than the present commit was applied.
            self.stop_for_new_keys(coming.won.uid);
        }
        self.checkpoints.named = coming.checkpoint.map(|named| named.covers);
    }

    /// Rows of a commit of ours are in the chain.
    pub(super) fn confirm_rows(&mut self, won: Won, rows: Vec<RowChange>) {
        let mut before = Vec::with_capacity(rows.len());
        for RowChange { key, value } in rows {
            let tree = self.files.tree();
            match tree.in_chain(&key) {
                Ok(old) => before.push((key.clone(), old)),
                Err(_) => {
                    tree.take_missing();
                    // Nobody had a row of the commit's own mail before.
                    if is_own_row(won.commit, &key, value.as_deref()) {
                        before.push((key.clone(), None));
                    } else {
                        self.follow.forget_history();
                    }
                }
            }
            let applied = self
                .files
                .tree_mut()
                .apply(Change { key, value }, won.generation);
            if let Err(error) = applied {
                self.fail(Notice::Rows(error));
            }
        }
        self.follow.remember(won.commit, before);
    }

    /// A lost commit is in the log: chunks in the commit can be read there.
    pub(super) fn located_commit(&mut self, won: Won) {
        if let Some((number, octets)) = self.commits.take_stray(won.commit) {
            let row = own_row(won, self.terms.lead, (number, octets));
            if let Some(value) = row.value {
                self.put_row(row.key, value);
            }
        }
        self.build_ready();
    }

    /// Work that is due now.
    pub(super) fn follow_due(&mut self) {
        let now = self.now.steady;
        if self.follow.watch_at.is_some_and(|at| at <= now) {
            self.watch();
            self.chain.refresh();
        }
        if self.follow.refresh_at.is_some_and(|at| at <= now) {
            self.follow.refresh_at = Some(now + self.terms.refresh);
            self.watch();
            self.chain.refresh();
        }
        self.go_on_following();
        self.adopt();
        self.advance_chain();
    }

    fn watch(&mut self) {
        self.follow.watch_at = None;
        if self.follow.is_watching {
            return;
        }
        self.follow.is_watching = true;
        let request = Request::Watch {
            mailbox: mailbox_name(LOG_MAILBOX),
        };
        let lead = AccountId(self.terms.lead);
        self.ask(lead, Urgency::Idle, request, Asked::Watch);
    }

    /// The log may have changed. A later refresh watches again after a fault.
    pub(super) fn watch_answered(&mut self, answer: &Result<Answer, Fault>) {
        self.follow.is_watching = false;
        if matches!(answer, Ok(Answer::Changed)) {
            self.follow.watch_at = Some(self.now.steady + WATCH_AGAIN);
            self.chain.refresh();
            self.advance_chain();
        }
    }

    /// Has the kernel forget what a commit has changed.
    pub(super) fn invalidate(&mut self, keys: impl Iterator<Item = Vec<u8>>) {
        let folders = self.files.known_folders();
        let mut seen = HashSet::new();
        for key in keys {
            let inode = match Key::decode(&key) {
                Ok(Key::Inode(inode) | Key::Xattr { inode, .. } | Key::Extents { inode, .. }) => {
                    inode
                }
                Ok(Key::Entry { home, name }) => {
                    let Some(parent) = folders.get(&home).copied() else {
                        continue;
                    };
                    let name = name.to_vec();
                    self.steps
                        .push_back(Step::Invalidate(Invalidate::Entry { parent, name }));
                    // The kernel keeps the names of a folder with the folder, and a new name's entry is none of them.
                    parent
                }
                _ => continue,
            };
            if seen.insert(inode) {
                self.steps
                    .push_back(Step::Invalidate(Invalidate::Inode(inode)));
            }
        }
    }
}
