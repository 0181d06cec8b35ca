//! Changes of a run: rows go into commits, and mails are removed when the chain says so.

use std::collections::BTreeMap;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::listing::by_mailbox;
use super::rows::{Removing, Writing};
use super::scan::packs_of;
use super::state::{Stage, Then, Upkeep, What};
use crate::format::{MailCopy, PackNumber, Place};
use crate::rows::{Key, RowValue, TombstoneRow};
use crate::tree::Change;

/// Rows of a run in a commit. A commit has room for all rows that programs may have waiting, and for these.
const ROWS_MAX: usize = 2_000;
/// Octets of these rows.
const ROWS_OCTETS_MAX: usize = 256 << 10;

impl<S: Storage> Volume<S> {
    /// Puts rows into commits, a bounded number at once. Returns whether all are in the chain.
    pub(crate) fn write_on(&mut self, writing: &mut Writing) -> Result<bool, String> {
        loop {
            if let Some(notice) = &self.read_only {
                return Err(notice.to_string());
            }
            if writing.keys.iter().any(|key| self.commits.holds(key)) {
                if !std::mem::replace(&mut writing.is_wanted, true) {
                    self.want_all(Vec::new());
                    continue;
                }
                writing.generation = None;
                return Ok(false);
            }
            let generation = *writing.generation.get_or_insert(self.chain.end().1);
            if self.chain.head().1 < generation {
                return Ok(false);
            }
            writing.done = writing.done.saturating_add(writing.keys.len());
            writing.keys.clear();
            writing.is_wanted = false;
            writing.generation = None;
            let (mut octets, mut is_over) = (0_usize, true);
            while writing.keys.len() < ROWS_MAX && octets < ROWS_OCTETS_MAX {
                let Some((key, value)) = writing.next_row() else {
                    break;
                };
                is_over = false;
                let own = value.as_ref().map_or(0, Vec::len);
                octets = octets.saturating_add(key.len()).saturating_add(own);
                if self.may_write(writing, &key) {
                    self.change_row(key.clone(), value);
                    writing.keys.push(key);
                }
            }
            if is_over {
                return Ok(true);
            }
        }
    }

    /// Whether a row is as the run has read it. A program that has changed the row meanwhile wins.
    fn may_write(&self, writing: &mut Writing, key: &[u8]) -> bool {
        let Some(expected) = writing.expected.remove(key) else {
            return true;
        };
        let is_changed = match Key::decode(key) {
            Ok(Key::Extents { inode, .. }) => self.is_changed(inode),
            _ => false,
        };
        let now = self.files.tree().get(key);
        !is_changed && now.is_ok_and(|now| now.as_deref() == Some(expected.as_slice()))
    }

    /// Rows have changed while a run is under way: the packs that they name are needed.
    pub(in super::super) fn note_touched(&mut self, changes: &[Change]) {
        if let Some(upkeep) = &mut self.upkeep {
            for change in changes {
                let value = change.value.as_deref().unwrap_or_default();
                let packs = packs_of(&change.key, value);
                upkeep.touched.extend(packs.iter().map(|pack| pack.0));
            }
        }
    }

    /// Rows of another mount: the packs that they name are needed.
    pub(in super::super) fn note_named(&mut self, rows: &[crate::format::commit::RowChange]) {
        if let Some(upkeep) = &mut self.upkeep {
            for row in rows {
                let packs = packs_of(&row.key, row.value.as_deref().unwrap_or_default());
                upkeep.touched.extend(packs.iter().map(|pack| pack.0));
            }
        }
        rows.iter().for_each(|row| self.note_row(&row.key));
    }

    /// A row changes, perhaps that of a pack.
    pub(in super::super) fn note_row(&mut self, key: &[u8]) {
        if let (Some(upkeep), Ok(Key::Pack(number))) = (&mut self.upkeep, Key::decode(key)) {
            upkeep.new_rows.insert(number);
        }
    }

    /// A pack is stored; perhaps with moved content.
    pub(in super::super) fn note_moved(&mut self, number: PackNumber, places: &[Place]) {
        match self.upkeep.as_mut().map(|upkeep| &mut upkeep.stage) {
            Some(Stage::Move(moving)) => moving.stored(number, places),
            Some(Stage::Anew(anew)) => anew.stored(number, places),
            _ => {}
        }
    }

    /// A pack is sent under another number.
    pub(in super::super) fn renumber_moved(&mut self, before: PackNumber, after: PackNumber) {
        match self.upkeep.as_mut().map(|upkeep| &mut upkeep.stage) {
            Some(Stage::Move(moving)) => moving.renumber(before, after),
            Some(Stage::Anew(anew)) => anew.renumber(before, after),
            _ => {}
        }
    }

    /// The chain has the tombstones: their mails may go.
    pub(super) fn begin_removal(&mut self, upkeep: &mut Upkeep) -> Result<Removing, Errno> {
        let mut removing = Removing::default();
        let mut doomed = std::mem::take(&mut upkeep.garbage.doomed);
        let mut due = BTreeMap::new();
        for (number, row) in &upkeep.garbage.due {
            let tombstone = self.tombstone_row(*number)?;
            if tombstone.is_none_or(|found| found.mail != row.mail) {
                continue;
            }
            if upkeep.touched.contains(number) {
                // A file names the pack since the plan was made: the next run looks again.
                continue;
            }
            let named = self.pack_row(*number)?;
            let is_needed = |copy: &MailCopy| {
                let row = named.as_ref();
                row.is_some_and(|row| row.copies.contains(copy))
            };
            let copies = row.copies.iter().filter(|copy| !is_needed(copy));
            doomed.extend(copies.map(|copy| (*copy, row.mail)));
            due.insert(*number, row.clone());
        }
        upkeep.garbage.due = due;
        for ((account, mailbox), mails) in by_mailbox(doomed) {
            let listed = upkeep.garbage.listing.uid_validity(account, mailbox);
            let numbers = listed.or_else(|| self.accounts.uid_validity(account, mailbox));
            removing.add((account, mailbox), numbers.unwrap_or(0), mails);
        }
        Ok(removing)
    }

    /// Mails are removed: their tombstones end, or keep what is left.
    pub(super) fn end_removal(&mut self, upkeep: &mut Upkeep) {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        let (Stage::Remove(removing), What::Collect(_, report)) = (stage, &mut upkeep.what) else {
            return;
        };
        report.removed = removing.removed;
        report.octets = removing.octets;
        report.history = removing.history;
        report.failed.extend(removing.failed);
        let mut changes = Vec::new();
        for (number, row) in &upkeep.garbage.due {
            let left = row
                .copies
                .iter()
                .filter(|copy| removing.kept.contains(copy));
            let copies: Vec<MailCopy> = left.copied().collect();
            let key = Key::Tombstone(*number).encode();
            if copies.is_empty() {
                changes.push((key, None));
            } else if copies != row.copies {
                let row = TombstoneRow {
                    copies,
                    ..row.clone()
                };
                changes.push((key, Some(row.encode())));
            }
        }
        upkeep.stage = Stage::Write(Writing::new(changes), Then::Move);
    }
}
