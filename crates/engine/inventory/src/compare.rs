//! Rows against listings: copies that are missing, and mails that no row names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use vere_ports::files::Errno;

use super::finding::{CheckReport, Finding, MailPlace};
use super::survey::{Inventory, Sight};
use crate::format::{Kind, MailCopy, PackNumber, Subject};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow, packs_prefix, tombstones_prefix};
use crate::tree::Tree;
use vere_placement::accounts::{Accounts, FIRST_DATA_MAILBOX, mailbox_name};

/// A pack of the rows, and its copies by what accounts say.
#[derive(Debug)]
pub struct Pack {
    /// The row.
    pub row: PackRow,
    /// The mail is there.
    pub good: Vec<MailCopy>,
    /// The mail is not there.
    pub missing: Vec<MailCopy>,
    /// The account was not read, or the row is younger than the listing.
    pub unknown: Vec<MailCopy>,
    /// The mail is there under another UID.
    pub moved: Vec<(MailCopy, MailCopy)>,
    /// Copies of accounts that the row does not name.
    pub unnamed: Vec<MailCopy>,
    /// Members of the group without a copy.
    pub lacking: Vec<u16>,
}

impl Pack {
    /// The copies as the row should have them.
    pub fn corrected(&self) -> Vec<MailCopy> {
        let moved = self.moved.iter().map(|(_, to)| *to);
        let known = self.good.iter().chain(&self.unknown).copied();
        let mut copies: Vec<MailCopy> = known.chain(moved).collect();
        for copy in &self.unnamed {
            if copies.iter().all(|other| other.account != copy.account) {
                copies.push(*copy);
            }
        }
        copies
    }
}

/// A second mail of equal id.
#[derive(Debug, Clone, Copy)]
pub struct Duplicate {
    /// The number of the pack.
    pub pack: u64,
    /// The copy that stays.
    pub kept: MailCopy,
    /// The second mail.
    pub extra: MailCopy,
}

/// What rows and listings say together.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The packs by number.
    pub packs: BTreeMap<u64, Pack>,
    /// The tombstones by the numbers of their packs.
    pub tombstones: BTreeMap<u64, TombstoneRow>,
    /// Second mails of packs.
    pub duplicates: Vec<Duplicate>,
    /// Mails of the volume that no row names.
    pub orphans: Vec<(Subject, MailCopy)>,
    /// Mailboxes with other numbers than the rows say: expected and found.
    pub renumbered: BTreeMap<(u16, u16), (u32, u32)>,
    findings: Vec<Finding>,
}

/// What the comparison must know of the mount.
pub struct Mount<'a> {
    /// The accounts.
    pub accounts: &'a Accounts,
    /// Whether a pack, or a copy of a pack for an account, is on the way.
    pub is_under_way: &'a dyn Fn(u64, Option<u16>) -> bool,
    /// Whether the row of a pack has changed since the listing began.
    pub is_new: &'a dyn Fn(u64) -> bool,
}

impl fmt::Debug for Mount<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mount = formatter.debug_struct("Mount");
        mount.field("accounts", &self.accounts);
        mount.finish_non_exhaustive()
    }
}

/// Compares.
///
/// # Errors
/// Failures to read rows.
pub fn compare(tree: &Tree, inventory: &Inventory, mount: &Mount<'_>) -> Result<Comparison, Errno> {
    let mut comparison = Comparison::default();
    comparison.compare_numbers(inventory, mount.accounts);
    tree.visit(&packs_prefix(), None, &mut |key, value| {
        if let (Ok(Key::Pack(pack)), Ok(row)) = (Key::decode(key), PackRow::decode(value)) {
            let pack_facts = of_row(row, inventory, mount, pack);
            comparison.packs.insert(pack, pack_facts);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    tree.visit(&tombstones_prefix(), None, &mut |key, value| {
        if let (Ok(Key::Tombstone(pack)), Ok(row)) = (Key::decode(key), TombstoneRow::decode(value))
        {
            comparison.tombstones.insert(pack, row);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    comparison.see_mails(inventory, mount);
    Ok(comparison)
}

/// The copies of a row, by what accounts say.
fn of_row(row: PackRow, inventory: &Inventory, mount: &Mount<'_>, number: u64) -> Pack {
    let mut pack = Pack {
        row,
        good: Vec::new(),
        missing: Vec::new(),
        unknown: Vec::new(),
        moved: Vec::new(),
        unnamed: Vec::new(),
        lacking: Vec::new(),
    };
    let mail = pack.row.mail;
    for copy in pack.row.copies.clone() {
        let expected = mount.accounts.uid_validity(copy.account, copy.mailbox);
        match inventory.sees(copy, mail, expected) {
            Sight::There => pack.good.push(copy),
            Sight::Unknown => pack.unknown.push(copy),
            Sight::Behind if (mount.is_new)(number) => pack.unknown.push(copy),
            // Behind the end of a mailbox there is nothing: the server has told a wrong UID, or was set back.
            Sight::Absent | Sight::Behind => match inventory.places(copy.account, mail).first() {
                Some(place) => pack.moved.push((copy, *place)),
                None => pack.missing.push(copy),
            },
        }
    }
    let named = |account: u16| pack.row.copies.iter().any(|copy| copy.account == account);
    if pack.row.kind == Kind::Data as u8 {
        for account in inventory.accounts.keys() {
            let place = inventory.places(*account, mail).first();
            if let Some(place) = place.filter(|_| !named(*account))
                && !(mount.is_under_way)(number, Some(*account))
            {
                pack.unnamed.push(*place);
            }
        }
        let members = mount.accounts.members(pack.row.group).into_iter();
        let has = |account: u16| pack.unnamed.iter().any(|copy| copy.account == account);
        pack.lacking = members
            .filter(|account| !named(*account) && !has(*account))
            .collect();
    }
    pack
}

impl Comparison {
    /// Mailboxes with other numbers than the volume has noted.
    fn compare_numbers(&mut self, inventory: &Inventory, accounts: &Accounts) {
        for (account, holding) in &inventory.accounts {
            if let Some(fault) = &holding.fault {
                self.findings.push(Finding::Unread {
                    account: *account,
                    fault: fault.clone(),
                });
            }
            for name in &holding.strange {
                self.findings.push(Finding::Strange {
                    account: *account,
                    mailbox: name.clone(),
                });
            }
            for (mailbox, shelf) in &holding.mailboxes {
                let (expected, found) = (
                    accounts.uid_validity(*account, *mailbox),
                    shelf.uid_validity,
                );
                if let Some(expected) = expected
                    && found != 0
                    && expected != found
                {
                    self.renumbered
                        .insert((*account, *mailbox), (expected, found));
                    self.findings.push(Finding::Renumbered {
                        account: *account,
                        mailbox: mailbox_name(*mailbox),
                        expected,
                        found,
                    });
                }
            }
        }
    }

    /// Mails of data mailboxes that no row names.
    fn see_mails(&mut self, inventory: &Inventory, mount: &Mount<'_>) {
        let named: BTreeSet<MailCopy> = self
            .packs
            .values()
            .flat_map(|pack| {
                let moved = pack.moved.iter().map(|(_, to)| to);
                pack.good.iter().chain(&pack.unnamed).chain(moved).copied()
            })
            .collect();
        for (copy, seen) in inventory.of_mailboxes(FIRST_DATA_MAILBOX..=u16::MAX) {
            let place = MailPlace::of(copy);
            let subject = match &seen.subject {
                Ok(subject) => subject,
                Err(text) => {
                    let subject = text.clone();
                    self.findings.push(Finding::Foreign { place, subject });
                    continue;
                }
            };
            let pack = self.packs.get(&subject.pack.0);
            match pack.filter(|pack| pack.row.mail == subject.mail) {
                Some(pack) => {
                    if let Some(reason) = contradiction(subject, &pack.row) {
                        self.findings.push(Finding::Subject { place, reason });
                    }
                    if named.contains(&copy) {
                        continue;
                    }
                    let places = pack.corrected();
                    if let Some(kept) = places.iter().find(|kept| kept.account == copy.account) {
                        self.duplicates.push(Duplicate {
                            pack: subject.pack.0,
                            kept: *kept,
                            extra: copy,
                        });
                    }
                }
                None => self.orphan(*subject, copy, mount),
            }
        }
    }

    /// A mail of ours whose pack no row has, or has with another mail.
    fn orphan(&mut self, subject: Subject, copy: MailCopy, mount: &Mount<'_>) {
        let is_buried = self
            .tombstones
            .get(&subject.pack.0)
            .is_some_and(|row| row.mail == subject.mail && row.copies.contains(&copy));
        if subject.kind != Kind::Data {
            let expected = Kind::Data;
            let reason = format!("expected a mail of kind {expected}; found {}", subject.kind);
            let place = MailPlace::of(copy);
            self.findings.push(Finding::Subject { place, reason });
        } else if !is_buried && !(mount.is_under_way)(subject.pack.0, None) {
            self.orphans.push((subject, copy));
        }
    }

    /// The packs that have a wrong copy.
    pub fn wrong_packs(&self) -> BTreeSet<PackNumber> {
        let wrong = self
            .packs
            .iter()
            .filter(|(_, pack)| !pack.missing.is_empty());
        wrong.map(|(number, _)| PackNumber(*number)).collect()
    }

    /// Adds what was found, but for missing copies, whose files are to be named.
    pub fn report(&mut self, report: &mut CheckReport) {
        for finding in self.findings.drain(..) {
            report.add(finding);
        }
        for (number, pack) in &self.packs {
            let number = *number;
            for (from, to) in &pack.moved {
                report.add(Finding::Moved {
                    place: MailPlace::of(*from),
                    pack: number,
                    uid: to.uid,
                });
            }
            for copy in &pack.unnamed {
                report.add(Finding::Unnamed {
                    place: MailPlace::of(*copy),
                    pack: number,
                });
            }
            for account in &pack.lacking {
                report.add(Finding::Lacking {
                    account: *account,
                    pack: number,
                });
            }
        }
        for Duplicate { kept, extra, pack } in &self.duplicates {
            let buried = self.tombstones.get(pack);
            if buried.is_none_or(|row| !row.copies.contains(extra)) {
                report.add(Finding::Duplicate {
                    place: MailPlace::of(*extra),
                    of: kept.uid,
                });
            }
        }
        for (subject, copy) in &self.orphans {
            report.add(Finding::Orphan {
                place: MailPlace::of(*copy),
                mail: subject.mail,
            });
        }
    }
}

/// What a subject says against the row of its mail.
fn contradiction(subject: &Subject, row: &PackRow) -> Option<String> {
    let numbers = [
        ("kind", u64::from(row.kind), subject.kind as u64),
        ("group", row.group.into(), subject.group.into()),
    ];
    let wrong = numbers
        .into_iter()
        .find(|(_, expected, found)| expected != found);
    wrong.map(|(what, expected, found)| format!("{what}: expected {expected}; found {found}"))
}
