//! Garbage: packs without live chunks, duplicates and orphans get tombstones, and their mails are removed when the chain has
//! said so for long enough.
//!
//! The first run that finds a mail needless puts a tombstone into the chain and removes nothing. A later run, after the time
//! below, looks again: a pack that is needed again loses its tombstone, else its row goes. The mails are removed only when the
//! chain has the tombstone and lacks the row, and the tombstone ends after that. Whatever a crash leaves is found by the next
//! run, since every step follows from rows and listings alone.
//!
//! Content that a file had at any time within `keep_versions` stays: its pack was needless for a shorter time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hashbrown::HashSet;

use super::compare::{Comparison, Pack};
use super::inspect::{Suspect, Verdict};
use super::survey::Inventory;
use crate::format::{Kind, MailCopy, Subject};
use crate::rows::{Key, RowValue, TombstoneRow};

/// How long mails stay that nobody needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectTerms {
    /// Content that files had within this time stays.
    pub keep_versions: Duration,
    /// The shortest time between a tombstone and the removal.
    pub grace: Duration,
}

impl CollectTerms {
    /// The times of the format's page.
    pub const DEFAULT: Self = Self {
        keep_versions: Duration::from_secs(7 * 24 * 3_600),
        grace: Duration::from_secs(24 * 3_600),
    };
}

/// The result of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectReport {
    /// Packs found needless by this run.
    pub packs_condemned: usize,
    /// Packs that are needed again.
    pub packs_revived: usize,
    /// Mails of the volume that no row names, found by this run.
    pub orphans: usize,
    /// Duplicates found by this run.
    pub duplicates: usize,
    /// Tombstones that are not old enough.
    pub waiting: usize,
    /// Mails removed.
    pub removed: usize,
    /// Octets of the removed mails, as their accounts count.
    pub octets: u64,
    /// Mails that claim to be of the volume and are not: left alone.
    pub forged: usize,
    /// Accounts that could not be read or changed, with the reason.
    pub failed: BTreeMap<u16, String>,
}

/// What a run does.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Rows to be written, in order.
    pub(super) changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Tombstones whose mails are removed when the chain has the changes.
    pub(super) due: BTreeMap<u64, TombstoneRow>,
}

/// The present of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present {
    pub(super) now: i64,
    pub(super) generation: u64,
    pub(super) terms: CollectTerms,
}

impl Present {
    fn tombstone(&self, mail: crate::format::MailId, copies: Vec<MailCopy>) -> TombstoneRow {
        TombstoneRow {
            mail,
            generation: self.generation,
            time_ms: self.now,
            copies,
        }
    }

    fn is_over(&self, row: &TombstoneRow, wait: Duration) -> bool {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        self.now.saturating_sub(row.time_ms) >= wait
    }

    /// How long a pack that had a place in the tree stays.
    fn pack_wait(&self) -> Duration {
        self.terms.keep_versions.max(self.terms.grace)
    }
}

/// Mails to be verified before a tombstone may name them: orphans themselves, and of duplicates the mail that stays.
pub(super) fn suspects(comparison: &Comparison, inventory: &Inventory) -> Vec<Suspect> {
    let mut copies: BTreeSet<MailCopy> = BTreeSet::new();
    copies.extend(comparison.orphans.iter().map(|(_, copy)| *copy));
    copies.extend(new_duplicates(comparison).map(|(_, kept, _)| kept));
    let suspect = |copy: MailCopy| {
        let subject = inventory.at(copy)?.subject.as_ref().ok()?;
        Some(Suspect {
            copy,
            uid_validity: inventory.uid_validity(copy.account, copy.mailbox)?,
            subject: *subject,
        })
    };
    copies.into_iter().filter_map(suspect).collect()
}

/// Duplicates without a tombstone: the pack, what stays and what goes.
fn new_duplicates(comparison: &Comparison) -> impl Iterator<Item = (u64, MailCopy, MailCopy)> + '_ {
    let is_new = |pack: u64, extra: MailCopy| {
        let row = comparison.tombstones.get(&pack);
        row.is_none_or(|row| !row.copies.contains(&extra))
    };
    let all = comparison.duplicates.iter();
    all.filter(move |duplicate| is_new(duplicate.pack, duplicate.extra))
        .map(|duplicate| (duplicate.pack, duplicate.kept, duplicate.extra))
}

/// Plans a run.
pub(super) fn plan(
    comparison: &Comparison,
    live: &HashSet<u64>,
    verdicts: &[(Suspect, Verdict)],
    present: Present,
    report: &mut CollectReport,
) -> Plan {
    let mut plan = Plan::default();
    let good: BTreeSet<MailCopy> = verdicts
        .iter()
        .filter(|(_, verdict)| matches!(verdict, Verdict::Good(_)))
        .map(|(suspect, _)| suspect.copy)
        .collect();
    let is_bad = |(_, verdict): &&(Suspect, Verdict)| matches!(verdict, Verdict::Bad(_));
    report.forged = verdicts.iter().filter(is_bad).count();
    for (number, pack) in &comparison.packs {
        if pack.row.kind == Kind::Data as u8 {
            let tombstone = comparison.tombstones.get(number);
            if live.contains(number) {
                plan.keep(*number, pack, tombstone, report);
            } else {
                plan.condemn(*number, pack, tombstone, present, report);
            }
        }
    }
    plan.add_duplicates(comparison, live, &good, present, report);
    plan.add_orphans(&comparison.orphans, comparison, &good, present, report);
    for (number, row) in &comparison.tombstones {
        let pack = comparison.packs.get(number);
        // A tombstone of a pack with a row was treated with the pack, unless it names duplicates only.
        let is_apart = pack.is_none_or(|pack| !names_row(row, pack));
        if is_apart && !plan.due.contains_key(number) && !plan.has(*number) {
            if present.is_over(row, present.terms.grace) {
                plan.due.insert(*number, row.clone());
            } else {
                report.waiting = report.waiting.saturating_add(1);
            }
        }
    }
    plan
}

/// Whether a tombstone is for the pack itself, not for duplicates of its mails.
fn names_row(row: &TombstoneRow, pack: &Pack) -> bool {
    row.mail == pack.row.mail && row.copies.iter().any(|copy| pack.row.copies.contains(copy))
}

impl Plan {
    fn has(&self, number: u64) -> bool {
        let key = Key::Tombstone(number).encode();
        self.changes.iter().any(|(of, _)| *of == key)
    }

    fn put(&mut self, number: u64, row: &TombstoneRow) {
        let key = Key::Tombstone(number).encode();
        self.changes.push((key, Some(row.encode())));
    }

    /// A pack that files need: a tombstone of earlier ends.
    fn keep(
        &mut self,
        number: u64,
        pack: &Pack,
        tombstone: Option<&TombstoneRow>,
        report: &mut CollectReport,
    ) {
        if tombstone.is_some_and(|row| names_row(row, pack)) {
            self.changes.push((Key::Tombstone(number).encode(), None));
            report.packs_revived = report.packs_revived.saturating_add(1);
        }
    }

    /// A pack that no file needs.
    fn condemn(
        &mut self,
        number: u64,
        pack: &Pack,
        tombstone: Option<&TombstoneRow>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let row_key = Key::Pack(number).encode();
        let mut copies = pack.row.copies.clone();
        copies.extend(pack.corrected());
        match tombstone.filter(|row| names_row(row, pack)) {
            Some(row) if present.is_over(row, present.pack_wait()) => {
                copies.extend(&row.copies);
                unify(&mut copies);
                let row = TombstoneRow {
                    copies,
                    ..row.clone()
                };
                self.put(number, &row);
                self.changes.push((row_key, None));
                self.due.insert(number, row);
            }
            Some(_) => report.waiting = report.waiting.saturating_add(1),
            None if copies.is_empty() => self.changes.push((row_key, None)),
            None => {
                let same = tombstone.filter(|row| row.mail == pack.row.mail);
                copies.extend(same.iter().flat_map(|row| &row.copies));
                unify(&mut copies);
                self.put(number, &present.tombstone(pack.row.mail, copies));
                report.packs_condemned = report.packs_condemned.saturating_add(1);
            }
        }
    }

    fn add_duplicates(
        &mut self,
        comparison: &Comparison,
        live: &HashSet<u64>,
        good: &BTreeSet<MailCopy>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let mut extras: BTreeMap<u64, Vec<MailCopy>> = BTreeMap::new();
        for (pack, kept, extra) in new_duplicates(comparison) {
            if live.contains(&pack) && good.contains(&kept) && !self.has(pack) {
                extras.entry(pack).or_default().push(extra);
                report.duplicates = report.duplicates.saturating_add(1);
            }
        }
        for (number, mut copies) in extras {
            let Some(pack) = comparison.packs.get(&number) else {
                continue;
            };
            let mail = pack.row.mail;
            let earlier = comparison.tombstones.get(&number);
            let earlier = earlier.filter(|row| row.mail == mail);
            copies.extend(earlier.iter().flat_map(|row| &row.copies));
            unify(&mut copies);
            self.put(number, &present.tombstone(mail, copies));
        }
    }

    fn add_orphans(
        &mut self,
        orphans: &[(Subject, MailCopy)],
        comparison: &Comparison,
        good: &BTreeSet<MailCopy>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let mut found: BTreeMap<u64, TombstoneRow> = BTreeMap::new();
        for (subject, copy) in orphans.iter().filter(|(_, copy)| good.contains(copy)) {
            let number = subject.pack.0;
            let earlier = comparison.tombstones.get(&number);
            let has_row = comparison.packs.contains_key(&number);
            // A number with two mails waits until the first of them is gone.
            if has_row || earlier.is_some_and(|row| row.mail != subject.mail) {
                continue;
            }
            let row = found.entry(number).or_insert_with(|| {
                let copies = earlier.map_or_else(Vec::new, |row| row.copies.clone());
                present.tombstone(subject.mail, copies)
            });
            if row.mail == subject.mail {
                row.copies.push(*copy);
                report.orphans = report.orphans.saturating_add(1);
            }
        }
        for (number, mut row) in found {
            unify(&mut row.copies);
            self.put(number, &row);
        }
    }
}

fn unify(copies: &mut Vec<MailCopy>) {
    copies.sort();
    copies.dedup();
}

/// Which copies of a tombstone are to be removed, and which may be there and cannot be seen now.
pub(super) fn removable(
    row: &TombstoneRow,
    inventory: &Inventory,
    is_needed: impl Fn(MailCopy) -> bool,
) -> (Vec<MailCopy>, Vec<MailCopy>) {
    let mut remove = Vec::new();
    let mut unseen = Vec::new();
    for copy in row.copies.iter().copied().filter(|copy| !is_needed(*copy)) {
        if !inventory.is_read(copy.account) {
            unseen.push(copy);
        } else if inventory.at(copy).is_some_and(|seen| seen.is(row.mail)) {
            remove.push(copy);
        }
    }
    (remove, unseen)
}
