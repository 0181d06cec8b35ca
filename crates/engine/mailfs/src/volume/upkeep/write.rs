//! Changes of a run: rows go into commits, and mails are removed when the chain says so.

use std::collections::BTreeMap;

use hashbrown::HashSet;
use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::collect::{self, Present};
use super::inspect::{Suspect, Verdict};
use super::paths::visit_extents;
use super::rows::{Removing, Writing};
use super::state::{Stage, Then, Upkeep, What};
use crate::format::MailCopy;
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

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
            if writing.left.is_empty() {
                return Ok(true);
            }
            let mut octets = 0_usize;
            while writing.keys.len() < ROWS_MAX && octets < ROWS_OCTETS_MAX {
                let Some((key, value)) = writing.left.pop_front() else {
                    break;
                };
                let own = value.as_ref().map_or(0, Vec::len);
                octets = octets.saturating_add(key.len()).saturating_add(own);
                self.change_row(key.clone(), value);
                writing.keys.push(key);
            }
        }
    }

    /// Decides what goes, from what was found.
    pub(super) fn plan_collection(
        &mut self,
        upkeep: &mut Upkeep,
        verdicts: &[(Suspect, Verdict)],
    ) -> Result<(), Errno> {
        let What::Collect(terms, report) = &mut upkeep.what else {
            return Ok(());
        };
        let mut live: HashSet<u64> = HashSet::new();
        visit_extents(self.files.tree(), |_, _, _, extent| {
            live.insert(extent.pack.0);
        })?;
        live.extend(self.packs_in_use());
        let under_way = upkeep.comparison.packs.keys();
        live.extend(under_way.filter(|pack| self.uploads.has(**pack)));
        let present = Present {
            now: self.now.millis(),
            generation: self.chain.end().1.saturating_add(1),
            terms: *terms,
        };
        let plan = collect::plan(&upkeep.comparison, &live, verdicts, present, report);
        let mut writing = Writing::new(plan.changes);
        // Rows of an earlier run may be in the journal only.
        for number in plan.due.keys() {
            writing.keys.push(Key::Tombstone(*number).encode());
            writing.keys.push(Key::Pack(*number).encode());
        }
        upkeep.due = plan.due;
        upkeep.stage = Stage::Write(writing, Then::Remove);
        Ok(())
    }

    /// The chain has the tombstones: their mails may go.
    pub(super) fn begin_removal(&mut self, upkeep: &mut Upkeep) -> Removing {
        let needed = self.needed_copies(upkeep);
        let mut by_mailbox: BTreeMap<(u16, u16), Vec<MailCopy>> = BTreeMap::new();
        let mut removing = Removing::default();
        upkeep
            .due
            .retain(|number, row| self.has_tombstone(*number, row));
        for row in upkeep.due.values() {
            let is_needed = |copy: MailCopy| needed.contains(&copy);
            let (remove, unseen) = collect::removable(row, &upkeep.inventory, is_needed);
            removing.kept.extend(unseen);
            for copy in remove {
                let copies = by_mailbox.entry((copy.account, copy.mailbox));
                copies.or_default().push(copy);
            }
        }
        for ((account, mailbox), copies) in by_mailbox {
            if let Some(uid_validity) = upkeep.inventory.uid_validity(account, mailbox) {
                removing.add(uid_validity, &copies);
            }
        }
        removing
    }

    /// Every place that a row names, or would name after a repair.
    fn needed_copies(&self, upkeep: &Upkeep) -> HashSet<MailCopy> {
        let mut needed = HashSet::new();
        for (number, pack) in &upkeep.comparison.packs {
            let row = self.files.tree().get(&Key::Pack(*number).encode());
            if let Ok(Some(row)) = row {
                let now = PackRow::decode(&row).map_or_else(|_| Vec::new(), |row| row.copies);
                needed.extend(now);
                needed.extend(pack.corrected());
            }
        }
        needed
    }

    fn has_tombstone(&self, number: u64, expected: &TombstoneRow) -> bool {
        let row = self.files.tree().get(&Key::Tombstone(number).encode());
        let row = row.ok().flatten();
        let row = row.as_deref().map(TombstoneRow::decode);
        row.is_some_and(|row| row.is_ok_and(|row| row.mail == expected.mail))
    }

    /// Mails are removed: their tombstones end, or keep what is left.
    pub(super) fn end_removal(&mut self, upkeep: &mut Upkeep) {
        let stage = std::mem::replace(&mut upkeep.stage, Stage::Over);
        let (Stage::Remove(removing), What::Collect(_, report)) = (stage, &mut upkeep.what) else {
            return;
        };
        report.removed = removing.removed.len();
        let sizes = removing
            .removed
            .iter()
            .filter_map(|copy| upkeep.inventory.at(*copy));
        report.octets = sizes.map(|seen| u64::from(seen.size)).sum();
        report.failed.extend(removing.failed);
        let mut changes = Vec::new();
        for (number, row) in &upkeep.due {
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
        upkeep.stage = Stage::Write(Writing::new(changes), Then::End);
    }
}
