//! Rebase: a commit of another mount comes below the changes of the mount, and conflicts are settled.

use std::collections::BTreeSet;

use bytes::Bytes;
use vere_ports::files::{Errno, Inode};
use vere_ports::storage::Storage;

use super::record::{Part, Won};
use super::state::Volume;
use super::step::{Notice, Step};
use crate::breakage::{Breakage, is_broken};
use crate::content::Source;
use crate::format::commit::RowChange;
use crate::merge::{Label, Merged, Places, merge};
use crate::posix::ContentChange;
use crate::rows::{InodeRow, Key, RowValue};
use crate::tree::{Change, Side, Sides};

/// What a rebase has made.
struct Rebased {
    ours: Sides,
    theirs: Sides,
    merged: Merged,
    /// Files kept for programs although the rows are gone.
    kept: Vec<(Inode, InodeRow)>,
    /// Rows with a new value.
    changed: Vec<Vec<u8>>,
    parts: Vec<Part>,
    /// Rows that wait for a commit.
    local: BTreeSet<Vec<u8>>,
    /// Lost packs with content absent from every commit.
    buried: BTreeSet<u64>,
}

impl<S: Storage> Volume<S> {
    /// Applies rows of other mounts below the changes of the mount.
    ///
    /// # Errors
    ///
    /// [`Errno::Again`] for a page outside memory; all rows are as before then.
    pub(super) fn follow_rows(&mut self, won: Won, rows: &[RowChange]) -> Result<(), Errno> {
        // The changes of calls and uploads are told before.
        self.collect_rows();
        self.reserve_homes();
        let keys = rows.iter().map(|row| row.key.as_slice());
        let saved = self.files.tree().save(keys);
        let (numbers, last_copy) = (self.files.numbers().clone(), self.follow.last_copy);
        match self.rebase(won, rows) {
            Ok(rebased) => self.take_rebased(won, rebased),
            Err(errno) => {
                self.files.tree_mut().restore(saved);
                *self.files.numbers() = numbers;
                self.follow.last_copy = last_copy;
                Err(errno)
            }
        }
    }

    /// Changes nothing but the tree.
    fn rebase(&mut self, won: Won, rows: &[RowChange]) -> Result<Rebased, Errno> {
        self.files.tree().take_missing();
        let ours = self.files.tree_mut().take_local()?;
        let kept = self.removed_and_open(rows)?;
        let theirs = self.apply_theirs(won, rows)?;
        let dirty: BTreeSet<Inode> = self.files.dirty_inodes().collect();
        let merged = if ours.is_empty() && dirty.is_empty() {
            Merged::default()
        } else {
            let machine = self.machine.name.clone();
            self.merge_rows((&ours, &theirs), &dirty, &machine)?
        };
        let merged = broken(merged);
        let (parts, local) = self.parts_of(won, (&ours, &theirs), &merged)?;
        let mut changed = Vec::new();
        // Rows made by the merge, the rows of conflict copies, are on neither side.
        let sides = theirs.keys().chain(ours.keys());
        let touched: BTreeSet<&Vec<u8>> = sides.chain(&local).collect();
        for key in touched {
            let now = self.files.tree().get(key)?;
            let before = ours.get(key).map(|side| &side.now);
            let before = before.or_else(|| theirs.get(key).map(|side| &side.base));
            if before != Some(&now) {
                changed.push(key.clone());
            }
        }
        let buried = self.find_buried(&theirs)?;
        if !self.files.tree().has_all() {
            return Err(Errno::Again);
        }
        Ok(Rebased {
            ours,
            theirs,
            merged,
            kept,
            changed,
            parts,
            local,
            buried,
        })
    }

    /// The tree is rebased: contents, kernel and journal follow.
    fn take_rebased(&mut self, won: Won, mut rebased: Rebased) -> Result<(), Errno> {
        let before = rebased.theirs.iter();
        let before = before.map(|(key, side)| (key.clone(), side.base.clone()));
        self.follow.remember(won.commit, before.collect());
        self.files.tree_mut().take_changes();
        for (inode, row) in rebased.kept {
            self.files.keep(inode, row);
        }
        self.settle_contents((&rebased.ours, &rebased.theirs), &rebased.merged)?;
        rebased.parts.extend(self.relocate(&rebased.merged.places));
        self.number_theirs(&rebased.theirs);
        self.invalidate(rebased.changed.into_iter());
        // One record: a kill before has the merge done once more, a kill behind finds the merge done.
        let position = self.journal.append(&rebased.parts).map_err(|_| Errno::Io)?;
        self.commits.based.clear();
        self.commits
            .wait_for(rebased.local, position, self.now.steady);
        if let Some(first) = rebased.buried.first()
            && !self.send_again(&rebased.buried)?
        {
            self.fail(Notice::Buried(*first));
        }
        self.tell(rebased.merged);
        Ok(())
    }

    /// Contents in memory, and contents on the way, follow chunks moved by the winner. The journal knows the places of
    /// copied ranges.
    fn relocate(&mut self, places: &Places) -> Vec<Part> {
        if places.is_empty() {
            return Vec::new();
        }
        self.fates.relocate(places);
        self.commits.relocate(places);
        let moved = self.files.relocate(places).into_iter();
        let told = moved.filter_map(|(inode, offset, piece)| match piece.source {
            Source::Chunk { extent, skip } => Some(Part::Content(ContentChange::Chunk {
                inode,
                offset,
                length: piece.length,
                extent,
                skip,
            })),
            _ => None,
        });
        told.collect()
    }

    /// Files open in programs and removed by the winner.
    fn removed_and_open(&mut self, rows: &[RowChange]) -> Result<Vec<(Inode, InodeRow)>, Errno> {
        let mut kept = Vec::new();
        for row in rows.iter().filter(|row| row.value.is_none()) {
            if let Ok(Key::Inode(inode)) = Key::decode(&row.key)
                && self.files.is_open(inode)
                && !self.files.is_dirty(inode)
                && self.files.tree().contains(&row.key)?
            {
                let row = self.files.load_to_keep(inode)?;
                kept.extend(row.map(|row| (inode, row)));
            }
        }
        Ok(kept)
    }

    /// Puts the winner's rows into the tree.
    fn apply_theirs(&mut self, won: Won, rows: &[RowChange]) -> Result<Sides, Errno> {
        let mut theirs = Sides::new();
        self.note_named(rows);
        for RowChange { key, value } in rows {
            let base = self.files.tree().get(key)?;
            let side = theirs
                .entry(key.clone())
                .or_insert(Side { base, now: None });
            side.now = value.clone().map(Bytes::from);
            let (key, value) = (key.clone(), value.clone());
            let tree = self.files.tree_mut();
            tree.apply(Change { key, value }, won.generation)?;
        }
        theirs.retain(|_, side| side.base != side.now);
        Ok(theirs)
    }

    /// Merges changes onto the tree, which has the winner's.
    pub(super) fn merge_rows(
        &mut self,
        sides: (&Sides, &Sides),
        dirty: &BTreeSet<Inode>,
        host: &str,
    ) -> Result<Merged, Errno> {
        self.reserve_homes();
        let label = Label::new(host, self.now.date());
        let mut last = self.follow.last_copy;
        let (tree, numbers) = self.files.tree_and_numbers();
        let mut new_inode = || crate::posix::inode_for_copy(numbers, &mut last);
        let merged = merge(tree, sides, dirty, &mut new_inode, &label);
        self.follow.last_copy = last;
        merged
    }

    /// Other mounts have told the numbers of mailboxes.
    fn number_theirs(&mut self, theirs: &Sides) {
        for (key, side) in theirs {
            if let (Ok(Key::Mailbox { account, mailbox }), Some(value)) =
                (Key::decode(key), &side.now)
                && let Ok(uid_validity) = u32::decode(value)
            {
                self.accounts.number(account, mailbox, uid_validity);
            }
        }
    }

    /// Contents follow the rows: some go on with other inodes, some are read again.
    fn settle_contents(
        &mut self,
        (ours, theirs): (&Sides, &Sides),
        merged: &Merged,
    ) -> Result<(), Errno> {
        for (from, to) in &merged.moves {
            self.commits.moved(*from, *to);
            match to {
                Some(to) => {
                    self.files.move_content(*from, *to);
                    self.uploads.moved(*from, *to);
                }
                None => self.files.discard(*from),
            }
        }
        for key in ours.keys() {
            match Key::decode(key) {
                // A file removed by the mount may be there again.
                Ok(Key::Inode(inode)) if self.files.tree().contains(key)? => {
                    self.files.lives_again(inode);
                }
                // Moved chunks may lie elsewhere.
                Ok(Key::Extents { inode, .. }) => self.files.reload(inode),
                _ => {}
            }
        }
        for key in theirs.keys() {
            match Key::decode(key) {
                Ok(Key::Extents { inode, .. }) => self.files.reload(inode),
                Ok(Key::Inode(inode)) if self.files.tree().contains(key)? => {
                    self.files.lives_again(inode);
                    self.files.reload(inode);
                }
                Ok(Key::Inode(inode)) => self.files.discard(inode),
                _ => {}
            }
        }
        Ok(())
    }

    /// The outcome of a merge for the journal, and the rows in want of a commit.
    fn parts_of(
        &self,
        won: Won,
        (ours, theirs): (&Sides, &Sides),
        merged: &Merged,
    ) -> Result<(Vec<Part>, BTreeSet<Vec<u8>>), Errno> {
        let mut parts: Vec<Part> = Vec::new();
        for (from, to) in &merged.moves {
            parts.push(Part::Moved(*from, *to));
        }
        let mut local = BTreeSet::new();
        let tree = self.files.tree();
        for key in tree.local_keys() {
            let now = tree.get(key)?;
            if tree.in_chain(key)? == now {
                continue;
            }
            local.insert(key.to_vec());
            let known = ours.get(key).map(|side| &side.now);
            let is_new = match Key::decode(key) {
                Ok(Key::Extents { inode, .. }) => {
                    known.is_none() || merged.rewritten.contains(&inode)
                }
                _ => known != Some(&now),
            };
            if is_new {
                let (key, value) = (key.to_vec(), now.map(Vec::from));
                parts.push(Part::Row(Change { key, value }));
            }
        }
        let void = ours.keys().filter(|key| !local.contains(*key));
        parts.extend(void.cloned().map(Part::Drop));
        parts.extend(self.bases_of_rebased(theirs, &local));
        if is_broken(Breakage::RebaseForgotten) {
            parts.clear();
        }
        parts.push(Part::Follows(self.noted(won)));
        Ok((parts, local))
    }

    /// Tells people of the journal's changes on the newest state.
    pub(super) fn tell_brought(&mut self, merged: Merged) {
        let notice = Notice::Brought(merged.conflicts.len());
        self.follow.conflict(notice.to_string());
        self.steps.push_back(Step::Log(notice));
        self.tell(merged);
    }

    /// Tells people about conflicts.
    pub(super) fn tell(&mut self, merged: Merged) {
        for conflict in merged.conflicts {
            self.follow.conflict(conflict.to_string());
            self.steps.push_back(Step::Log(Notice::Conflict(conflict)));
        }
    }
}

/// A known breakage drops the contents of the loser.
fn broken(mut merged: Merged) -> Merged {
    if is_broken(Breakage::ContentDropped) {
        for (_, to) in &mut merged.moves {
            *to = None;
        }
    }
    merged
}
