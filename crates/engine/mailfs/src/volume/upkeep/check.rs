//! The end of a check: what is damaged or lost, by the names of files, and repair.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use vere_ports::files::{Errno, Inode};
use vere_ports::storage::Storage;

use super::super::accounts::{
    LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX, PAGES_MAILBOX, is_history,
};
use super::super::state::Volume;
use super::compare::{Comparison, Pack};
use super::finding::{CheckReport, CheckTerms, Finding, MailPlace};
use super::inspect::{Suspect, Verdict};
use super::paths::{Needs, Paths, needs, visit_extents};
use super::rows::Writing;
use super::state::{Stage, Then, Upkeep, What};
use super::survey::Inventory;
use crate::format::{Kind, MailCopy, PackNumber, Place};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

/// The mails that a check reads.
pub(super) fn suspects(
    terms: CheckTerms,
    comparison: &Comparison,
    inventory: &Inventory,
) -> Vec<Suspect> {
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
struct Verified {
    /// Damaged copies, with the reason.
    damaged: BTreeMap<PackNumber, Vec<(MailCopy, String)>>,
    places: BTreeMap<PackNumber, BTreeSet<Place>>,
}

impl Verified {
    fn of(verdicts: &[(Suspect, Verdict)], report: &mut CheckReport) -> Self {
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
    fn copies(&self, number: PackNumber, pack: &Pack) -> Vec<MailCopy> {
        let mut copies = pack.corrected();
        copies.retain(|copy| !self.is_damaged(number, *copy));
        copies
    }
}

impl<S: Storage> Volume<S> {
    /// Names the files of wrong packs, and begins the repair if wanted.
    pub(super) fn end_check(
        &mut self,
        upkeep: &mut Upkeep,
        verdicts: &[(Suspect, Verdict)],
    ) -> Result<(), Errno> {
        let What::Check(terms, report) = &mut upkeep.what else {
            return Ok(());
        };
        let verified = Verified::of(verdicts, report);
        let mut wrong = upkeep.comparison.wrong_packs();
        wrong.extend(verified.damaged.keys().copied());
        let needs = needs(self.files.tree(), &wrong)?;
        let inodes: HashSet<Inode> = needs
            .values()
            .flat_map(|files| files.keys().copied())
            .collect();
        let paths = Paths::of(self.files.tree(), &inodes)?;
        for number in &wrong {
            if let Some(pack) = upkeep.comparison.packs.get(&number.0) {
                report_pack(*number, pack, &verified, (&needs, &paths), report);
            }
        }
        self.check_places(&verified, report)?;
        self.note_check()?;
        report.findings.sort();
        if terms.repair {
            let changes = self.repair(&upkeep.comparison, &verified);
            report.repaired = changes.len();
            upkeep.stage = Stage::Write(Writing::new(changes), Then::Copy);
        }
        Ok(())
    }

    /// Compares the places of extents with the frames of the packs that were read.
    fn check_places(&self, verified: &Verified, report: &mut CheckReport) -> Result<(), Errno> {
        if verified.places.is_empty() {
            return Ok(());
        }
        visit_extents(self.files.tree(), |inode, offset, _, extent| {
            let place = Place {
                at: extent.at,
                sealed_len: extent.sealed_len,
            };
            let places = verified.places.get(&extent.pack);
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

    /// The rows to be changed; copies to be made are noted.
    fn repair(
        &mut self,
        comparison: &Comparison,
        verified: &Verified,
    ) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut changes = Vec::new();
        for (number, pack) in &comparison.packs {
            let copies = verified.copies(PackNumber(*number), pack);
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
                for account in self.accounts.members(pack.row.group) {
                    if copies.iter().all(|copy| copy.account != account) {
                        self.replicas.lacks(account, *number);
                    }
                }
            }
            if let Some(damaged) = verified.damaged.get(&PackNumber(*number))
                && !comparison.tombstones.contains_key(number)
            {
                let row = TombstoneRow {
                    mail: pack.row.mail,
                    generation: self.chain.end().1.saturating_add(1),
                    time_ms: self.now.millis(),
                    copies: damaged.iter().map(|(copy, _)| *copy).collect(),
                };
                changes.push((Key::Tombstone(*number).encode(), Some(row.encode())));
            }
        }
        for ((account, mailbox), (_, found)) in &comparison.renumbered {
            self.numbered(*account, *mailbox, *found);
        }
        changes
    }

    /// Every copy that can be made now is made.
    pub(super) fn end_copies(&mut self, upkeep: &mut Upkeep) {
        upkeep.stage = Stage::Over;
        if let What::Check(_, report) = &mut upkeep.what {
            let changed = upkeep.comparison.packs.keys();
            let keys: Vec<Vec<u8>> = changed
                .map(|number| Key::Pack(*number).encode())
                .filter(|key| self.commits.holds(key))
                .collect();
            report.repaired = report.repaired.saturating_add(keys.len());
            upkeep.stage = Stage::Write(Writing::of_keys(keys), Then::End);
        }
    }
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
