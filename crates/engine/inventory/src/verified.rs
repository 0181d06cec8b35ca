//! What a check has found by reading mails: damaged or lost content, by the names of files, and the rows of a repair.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use vere_placement::accounts::{
    Accounts, LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX, is_history,
};
use vere_ports::files::{Errno, Inode};

use crate::collection::rows::RowChange;
use crate::compare::{Comparison, Pack};
use crate::finding::{CheckReport, CheckTerms, Finding, MailPlace};
use crate::format::{Kind, MailCopy, PackNumber, Place};
use crate::inspect::{Suspect, Verdict};
use crate::paths::{Needs, Paths, needs, visit_extents};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};
use crate::survey::Inventory;
use crate::tree::Tree;

/// The mails that a check reads.
pub fn suspects(terms: CheckTerms, comparison: &Comparison, inventory: &Inventory) -> Vec<Suspect> {
    if !terms.data {
        return Vec::new();
    }
    let packs = comparison.packs.values();
    let packs = packs.filter(|pack| pack.row.kind == Kind::Data as u8);
    let good = packs.flat_map(|pack| {
        let moved = pack.moved.iter().map(|(_, to)| *to);
        pack.good.iter().copied().chain(moved)
    });
    let log = inventory.of_mailboxes(LOG_MAILBOX..=PAGES_MAILBOX);
    let copies = inventory.of_mailboxes(LOG_COPY_MAILBOX..=PAGES_COPY_MAILBOX);
    let log = log.chain(copies).map(|(copy, _)| copy);
    let suspect = |copy: MailCopy| {
        let subject = inventory.at(copy)?.subject.as_ref().ok()?;
        Some(Suspect {
            copy,
            uid_validity: inventory.uid_validity(copy.account, copy.mailbox)?,
            subject: *subject,
        })
    };
    good.chain(log).filter_map(suspect).collect()
}

/// What the mails say.
#[derive(Debug, Default)]
pub struct Verified {
    /// Damaged copies, with the reason.
    pub damaged: BTreeMap<PackNumber, Vec<(MailCopy, String)>>,
    /// The frames of packs that were read.
    pub places: BTreeMap<PackNumber, BTreeSet<Place>>,
}

impl Verified {
    /// Takes what mails say into the report.
    pub fn of(verdicts: &[(Suspect, Verdict)], report: &mut CheckReport) -> Self {
        let mut verified = Self::default();
        for (suspect, verdict) in verdicts {
            let Suspect { copy, subject, .. } = suspect;
            let place = MailPlace::of(*copy);
            match verdict {
                Verdict::Good(inspected) => {
                    report.verified = report.verified.saturating_add(1);
                    if subject.kind == Kind::Data {
                        let places = inspected.places.iter().copied().collect();
                        verified.places.insert(subject.pack, places);
                    }
                }
                Verdict::Bad(reason) if is_history(copy.mailbox) => {
                    let reason = reason.clone();
                    report.add(Finding::Forged { place, reason });
                }
                Verdict::Bad(reason) => {
                    let damaged = verified.damaged.entry(subject.pack).or_default();
                    damaged.push((*copy, reason.clone()));
                }
                Verdict::Unread(fault) => report.add(Finding::Unread {
                    account: copy.account,
                    fault: fault.clone(),
                }),
            }
        }
        verified
    }

    fn is_damaged(&self, pack: PackNumber, copy: MailCopy) -> bool {
        let damaged = self.damaged.get(&pack);
        damaged.is_some_and(|all| all.iter().any(|(of, _)| *of == copy))
    }

    /// The copies as the row should have them.
    pub fn copies(&self, number: PackNumber, pack: &Pack) -> Vec<MailCopy> {
        let mut copies = pack.corrected();
        copies.retain(|copy| !self.is_damaged(number, *copy));
        copies
    }

    /// Compares the places of extents with the frames of the packs that were read.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn check_places(&self, tree: &Tree, report: &mut CheckReport) -> Result<(), Errno> {
        if self.places.is_empty() {
            return Ok(());
        }
        visit_extents(tree, |inode, offset, _, extent| {
            let place = Place {
                at: extent.at,
                sealed_len: extent.sealed_len,
            };
            let places = self.places.get(&extent.pack);
            if places.is_some_and(|places| !places.contains(&place)) {
                let reason = format!(
                    "inode {} needs a frame at {} for offset {offset}; found none",
                    inode.0, extent.at
                );
                let pack = extent.pack.0;
                report.add(Finding::Pack { pack, reason });
            }
        })
    }

    /// The rows to be changed by a commit of this generation and time, and the packs that accounts lack.
    pub fn repair(
        &self,
        comparison: &Comparison,
        accounts: &Accounts,
        (generation, time_ms): (u64, i64),
    ) -> (Vec<RowChange>, Vec<(u16, u64)>) {
        let (mut changes, mut lacking) = (Vec::new(), Vec::new());
        for (number, pack) in &comparison.packs {
            let copies = self.copies(PackNumber(*number), pack);
            // A pack without copies keeps its row: its mails may come back.
            if copies.is_empty() {
                continue;
            }
            if copies != pack.row.copies {
                let row = PackRow {
                    copies: copies.clone(),
                    ..pack.row.clone()
                };
                changes.push((Key::Pack(*number).encode(), Some(row.encode())));
            }
            if pack.row.kind == Kind::Data as u8 {
                for account in accounts.members(pack.row.group) {
                    if copies.iter().all(|copy| copy.account != account) {
                        lacking.push((account, *number));
                    }
                }
            }
            if let Some(damaged) = self.damaged.get(&PackNumber(*number))
                && !comparison.tombstones.contains_key(number)
            {
                let row = TombstoneRow {
                    mail: pack.row.mail,
                    generation,
                    time_ms,
                    copies: damaged.iter().map(|(copy, _)| *copy).collect(),
                };
                changes.push((Key::Tombstone(*number).encode(), Some(row.encode())));
            }
        }
        (changes, lacking)
    }
}

/// Reports wrong packs, by the names of the files with their content.
///
/// # Errors
///
/// Failures to read rows.
pub fn report_packs(
    tree: &Tree,
    comparison: &Comparison,
    verified: &Verified,
    report: &mut CheckReport,
) -> Result<(), Errno> {
    let mut wrong = comparison.wrong_packs();
    wrong.extend(verified.damaged.keys().copied());
    let needs = needs(tree, &wrong)?;
    let inodes: HashSet<Inode> = needs
        .values()
        .flat_map(|files| files.keys().copied())
        .collect();
    let paths = Paths::of(tree, &inodes)?;
    for number in &wrong {
        if let Some(pack) = comparison.packs.get(&number.0) {
            report_pack(*number, pack, verified, (&needs, &paths), report);
        }
    }
    Ok(())
}

/// Reports the wrong copies of a pack, and its loss if none is left.
fn report_pack(
    number: PackNumber,
    pack: &Pack,
    verified: &Verified,
    (needs, paths): (&Needs, &Paths),
    report: &mut CheckReport,
) {
    let files = needs.get(&number);
    let mut names: Vec<String> = files
        .into_iter()
        .flat_map(|files| files.keys().map(|inode| paths.path(*inode)))
        .collect();
    names.sort();
    for copy in &pack.missing {
        report.add(Finding::Missing {
            place: MailPlace::of(*copy),
            pack: number.0,
            paths: names.clone(),
        });
    }
    for (copy, reason) in verified.damaged.get(&number).into_iter().flatten() {
        report.add(Finding::Damaged {
            place: MailPlace::of(*copy),
            pack: number.0,
            reason: reason.clone(),
            paths: names.clone(),
        });
    }
    if verified.copies(number, pack).is_empty() {
        for (inode, offset) in files.into_iter().flatten() {
            report.add(Finding::Lost {
                path: paths.path(*inode),
                offset: *offset,
                pack: number.0,
            });
        }
    }
}
