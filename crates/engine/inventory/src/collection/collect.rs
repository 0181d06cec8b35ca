//! Garbage: packs without live chunks, duplicates and orphans get tombstones, and their mails are removed when the chain has
//! said so for long enough.
//!
//! The first run that finds a mail needless puts a tombstone into the chain and removes nothing. A later run, after the time
//! below, looks again: a pack that is needed again loses its tombstone, else its row goes. The mails are removed only when the
//! chain has the tombstone and lacks the row, and the tombstone ends after that. Whatever a crash leaves is found by the next
//! run, since every step follows from rows and listings alone.
//!
//! Content that a file had at any time within `keep_versions` stays: its pack was needless for a shorter time. Commits and pages
//! of the past need no tombstone: a checkpoint that is over stays over ([`super::history`]). Times are those of the volume
//! ([`super::clock`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::listing::{Duplicate, Listing};
use super::rows::RowChange;
use super::scan::Weighed;
use crate::format::{Kind, MailCopy, MailId, Subject};
use crate::inspect::{Suspect, Verdict};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

/// Tombstones that a run writes or ends; further ones are left to the next run.
pub const TOMBSTONES_MAX: usize = 20_000;
/// How long content stays in a volume that does not say.
const KEEP_VERSIONS: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long mails stay without any use, and how much a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectTerms {
    /// Content that files had within this time stays; as the volume's settings say if absent.
    pub keep_versions: Option<Duration>,
    /// The shortest time between a tombstone and the removal.
    pub grace: Duration,
    /// Octets of content that are moved into new packs.
    pub move_max: u64,
}

impl CollectTerms {
    /// The times of the format's page, and the bounds of a night.
    pub const DEFAULT: Self = Self {
        keep_versions: None,
        grace: Duration::from_secs(24 * 3_600),
        move_max: 256 << 20,
    };

    /// How long a pack stays that had a place in the tree; `settings` are the times of the volume.
    pub fn pack_wait(&self, settings: Option<(Duration, Duration)>) -> Duration {
        let (versions, deleted) = settings.unwrap_or((KEEP_VERSIONS, KEEP_VERSIONS));
        let versions = self.keep_versions.unwrap_or(versions.max(deleted));
        versions.max(self.grace)
    }
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
    /// Commits and mails of pages among the removed mails.
    pub history: usize,
    /// Packs whose live content was moved into new packs.
    pub packs_moved: usize,
    /// Octets of this content.
    pub octets_moved: u64,
    /// Files in many pieces that were written anew.
    pub files_rewritten: usize,
    /// Octets of these files.
    pub octets_rewritten: u64,
    /// Whether another run has more to do at once.
    pub has_more: bool,
    /// Mails that claim to be of the volume and are not: left alone.
    pub forged: usize,
    /// Accounts that could not be read or changed, with the reason.
    pub failed: BTreeMap<u16, String>,
}

/// What a run does.
#[derive(Debug, Default)]
pub struct Plan {
    /// Rows to be written, in order.
    pub changes: Vec<RowChange>,
    /// Tombstones whose mails are removed when the chain has the changes.
    pub due: BTreeMap<u64, TombstoneRow>,
    /// Tombstones as this run leaves them; absent for an ended one.
    written: HashMap<u64, Option<TombstoneRow>>,
}

/// The present of a run.
#[derive(Debug, Clone, Copy)]
pub struct Present {
    /// The time of the volume, in milliseconds.
    pub now: i64,
    /// The generation of the head.
    pub generation: u64,
    /// How long a pack stays that had a place in the tree.
    pub pack_wait: Duration,
    /// The shortest time between a tombstone and the removal.
    pub grace: Duration,
}

impl Present {
    fn tombstone(&self, mail: MailId, copies: Vec<MailCopy>) -> TombstoneRow {
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
}

/// Mails to be verified before a tombstone may name them: orphans themselves, and of duplicates the mail that stays.
pub fn suspects(listing: &Listing) -> Vec<Suspect> {
    let mut copies: BTreeMap<MailCopy, Subject> = BTreeMap::new();
    copies.extend(
        listing
            .orphans
            .iter()
            .map(|(subject, copy)| (*copy, *subject)),
    );
    copies.extend(
        listing
            .stray_pages
            .iter()
            .map(|(subject, copy)| (*copy, *subject)),
    );
    copies.extend(listing.duplicates.iter().map(|of| (of.kept, of.subject)));
    let suspect = |(copy, subject): (MailCopy, Subject)| {
        Some(Suspect {
            copy,
            uid_validity: listing.uid_validity(copy.account, copy.mailbox)?,
            subject,
        })
    };
    copies.into_iter().filter_map(suspect).collect()
}

/// The mails with true subjects.
pub fn good(verdicts: &[(Suspect, Verdict)]) -> BTreeSet<MailCopy> {
    let is_good = |(_, verdict): &&(Suspect, Verdict)| matches!(verdict, Verdict::Good(_));
    let good = verdicts.iter().filter(is_good);
    good.map(|(suspect, _)| suspect.copy).collect()
}

/// Whether a tombstone is for the pack itself, not for duplicates of its mails.
pub fn names_row(row: &TombstoneRow, pack: &PackRow) -> bool {
    row.mail == pack.mail && row.copies.iter().any(|copy| pack.copies.contains(copy))
}

impl Plan {
    /// Whether the run has no room for more.
    pub fn is_full(&self) -> bool {
        self.changes.len().saturating_add(self.due.len()) >= TOMBSTONES_MAX
    }

    /// Whether the run gives a pack with this row its tombstone.
    pub fn names(&self, number: u64, pack: &PackRow) -> bool {
        let row = self.written.get(&number);
        row.is_some_and(|row| row.as_ref().is_some_and(|row| names_row(row, pack)))
    }

    fn put(&mut self, number: u64, row: &TombstoneRow) {
        self.written.insert(number, Some(row.clone()));
        let key = Key::Tombstone(number).encode();
        self.changes.push((key, Some(row.encode())));
    }

    /// Whether the run has decided about a tombstone.
    pub fn has(&self, number: u64) -> bool {
        self.written.contains_key(&number) || self.due.contains_key(&number)
    }

    /// A pack that files need: a tombstone of earlier ends.
    pub fn keep(
        &mut self,
        pack: &Weighed,
        tombstone: Option<&TombstoneRow>,
        report: &mut CollectReport,
    ) {
        if tombstone.is_some_and(|row| names_row(row, &pack.row)) {
            self.written.insert(pack.number, None);
            self.changes
                .push((Key::Tombstone(pack.number).encode(), None));
            report.packs_revived = report.packs_revived.saturating_add(1);
        }
    }

    /// A pack that no file needs.
    pub fn condemn(
        &mut self,
        pack: &Weighed,
        tombstone: Option<&TombstoneRow>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let number = pack.number;
        let row_key = Key::Pack(number).encode();
        let mut copies = pack.row.copies.clone();
        match tombstone.filter(|row| names_row(row, &pack.row)) {
            Some(row) if present.is_over(row, present.pack_wait) => {
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

    /// A second mail of a pack that files need.
    pub fn add_duplicate(
        &mut self,
        duplicate: &Duplicate,
        mail: MailId,
        earlier: Option<&TombstoneRow>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let mine = self.written.get(&duplicate.pack).cloned().flatten();
        let mut copies = vec![duplicate.extra];
        let earlier = earlier.filter(|row| row.mail == mail);
        copies.extend(earlier.iter().flat_map(|row| &row.copies));
        copies.extend(mine.iter().flat_map(|row| &row.copies));
        unify(&mut copies);
        self.put(duplicate.pack, &present.tombstone(mail, copies));
        report.duplicates = report.duplicates.saturating_add(1);
    }

    /// A mail of a pack that no row names.
    pub fn add_orphan(
        &mut self,
        (subject, copy): (&Subject, MailCopy),
        earlier: Option<&TombstoneRow>,
        present: Present,
        report: &mut CollectReport,
    ) {
        let number = subject.pack.0;
        let mine = self.written.get(&number).cloned().flatten();
        // A number with two mails waits until the first of them is gone.
        let is_other = |row: &TombstoneRow| row.mail != subject.mail;
        if earlier.is_some_and(is_other) || mine.as_ref().is_some_and(is_other) {
            return;
        }
        let mut copies = vec![copy];
        copies.extend(earlier.iter().flat_map(|row| &row.copies));
        copies.extend(mine.iter().flat_map(|row| &row.copies));
        unify(&mut copies);
        self.put(number, &present.tombstone(subject.mail, copies));
        report.orphans = report.orphans.saturating_add(1);
    }

    /// A tombstone that is for no pack with a row.
    pub fn add_apart(
        &mut self,
        number: u64,
        row: TombstoneRow,
        present: Present,
        report: &mut CollectReport,
    ) {
        if present.is_over(&row, present.grace) {
            self.due.insert(number, row);
        } else {
            report.waiting = report.waiting.saturating_add(1);
        }
    }
}

fn unify(copies: &mut Vec<MailCopy>) {
    copies.sort();
    copies.dedup();
}

/// Whether a row is for content: packs, and commits with content.
pub const fn has_content(kind: u8) -> bool {
    kind == Kind::Data as u8 || kind == Kind::Commit as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_stays_for_the_longest_of_all_times() {
        let terms = CollectTerms::DEFAULT;
        let days = |days: u64| Duration::from_secs(days * 24 * 3_600);
        assert_eq!(terms.pack_wait(None), days(7));
        assert_eq!(terms.pack_wait(Some((days(30), days(7)))), days(30));
        assert_eq!(terms.pack_wait(Some((days(2), days(7)))), days(7));
        assert_eq!(terms.pack_wait(Some((days(0), days(0)))), days(1));
    }
}
