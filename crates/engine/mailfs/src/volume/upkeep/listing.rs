//! What a collection keeps of the listings of accounts: each slice is compared with rows at once, and only mails that no row
//! names stay in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::accounts::{FIRST_DATA_MAILBOX, LOG_MAILBOX, PAGES_MAILBOX};
use super::super::state::{Asked, Volume};
use super::history::LOG_MAX;
use super::survey::{Seen, Survey};
use crate::format::{Kind, MailCopy, MailId, PackNumber, Subject};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

/// Orphans and duplicates that a run deals with; the next run finds the others.
const STRAYS_MAX: usize = 10_000;
/// Mails of pages that a run looks at.
const PAGES_MAX: usize = 100_000;

/// A second mail of equal id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duplicate {
    pub(super) pack: u64,
    pub(super) subject: Subject,
    pub(super) kept: MailCopy,
    pub(super) extra: MailCopy,
}

/// What a collection knows of the mails of accounts.
#[derive(Debug, Default)]
pub(super) struct Listing {
    numbers: BTreeMap<(u16, u16), u32>,
    /// Accounts that were not read whole.
    pub(super) unread: BTreeMap<u16, String>,
    arrived: VecDeque<(MailCopy, Seen)>,
    pub(super) orphans: Vec<(Subject, MailCopy)>,
    pub(super) duplicates: Vec<Duplicate>,
    /// Mails of pages without a row.
    pub(super) stray_pages: Vec<(Subject, MailCopy)>,
    /// The lead's log and pages.
    pub(super) log: Vec<(u32, Subject)>,
    pub(super) pages: Vec<(u32, Subject)>,
    pub(super) has_more: bool,
}

impl Listing {
    /// The numbers of a mailbox as listed.
    pub(super) fn uid_validity(&self, account: u16, mailbox: u16) -> Option<u32> {
        self.numbers.get(&(account, mailbox)).copied()
    }

    /// Takes what a survey has listed so far.
    pub(super) fn take(&mut self, survey: &mut Survey) {
        survey.drain(&mut |copy, seen| self.arrived.push_back((copy, seen)));
    }

    /// The survey is over.
    pub(super) fn end(&mut self, survey: Survey) {
        let found = survey.finish();
        for (account, holding) in found.accounts {
            if let Some(fault) = holding.fault {
                self.unread.insert(account, fault);
            }
            for (mailbox, shelf) in holding.mailboxes {
                if shelf.uid_validity != 0 {
                    self.numbers.insert((account, mailbox), shelf.uid_validity);
                }
            }
        }
    }

    fn note<T>(all: &mut Vec<T>, one: T, max: usize, has_more: &mut bool) {
        if all.len() < max {
            all.push(one);
        } else {
            *has_more = true;
        }
    }
}

impl<S: Storage> Volume<S> {
    /// Compares arrived mails with rows.
    ///
    /// # Errors
    ///
    /// Failures to read rows: the mails wait.
    pub(super) fn look_through(&mut self, listing: &mut Listing) -> Result<(), Errno> {
        while let Some((copy, seen)) = listing.arrived.front() {
            if let Ok(subject) = seen.subject {
                let copy = *copy;
                self.look_at(listing, subject, copy)?;
            }
            listing.arrived.pop_front();
        }
        Ok(())
    }

    fn look_at(
        &self,
        listing: &mut Listing,
        subject: Subject,
        copy: MailCopy,
    ) -> Result<(), Errno> {
        let more = &mut listing.has_more;
        let is_lead = copy.account == self.terms.lead;
        match copy.mailbox {
            LOG_MAILBOX if is_lead => {
                Listing::note(&mut listing.log, (copy.uid, subject), LOG_MAX, more)
            }
            PAGES_MAILBOX if is_lead && subject.kind == Kind::Pages => {
                let row = self.pack_row(subject.pack.0)?;
                if row.is_none_or(|row| row.mail != subject.mail) {
                    Listing::note(&mut listing.stray_pages, (subject, copy), STRAYS_MAX, more);
                }
                Listing::note(&mut listing.pages, (copy.uid, subject), PAGES_MAX, more);
            }
            FIRST_DATA_MAILBOX.. if subject.kind == Kind::Data => {
                self.look_at_pack(listing, subject, copy)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn look_at_pack(
        &self,
        listing: &mut Listing,
        subject: Subject,
        copy: MailCopy,
    ) -> Result<(), Errno> {
        let number = subject.pack.0;
        let row = self.pack_row(number)?;
        if row
            .as_ref()
            .is_some_and(|row| row.copies.contains(&copy) && row.mail == subject.mail)
        {
            return Ok(());
        }
        let is_buried = self
            .tombstone_row(number)?
            .is_some_and(|row| row.mail == subject.mail && row.copies.contains(&copy));
        if is_buried || self.is_under_way(number, copy.account) {
            return Ok(());
        }
        let more = &mut listing.has_more;
        match row {
            None => Listing::note(&mut listing.orphans, (subject, copy), STRAYS_MAX, more),
            Some(row) if row.mail == subject.mail => {
                let kept = row.copies.iter().find(|kept| kept.account == copy.account);
                if let Some(kept) = kept {
                    let duplicate = Duplicate {
                        pack: number,
                        subject,
                        kept: *kept,
                        extra: copy,
                    };
                    Listing::note(&mut listing.duplicates, duplicate, STRAYS_MAX, more);
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Whether a pack, or a copy of a pack for an account, is on its way.
    pub(super) fn is_under_way(&self, pack: u64, account: u16) -> bool {
        let is_copy = |asked: &Asked| matches!(asked, Asked::Copy(of, to) if *of == PackNumber(pack) && *to == account);
        self.uploads.has(pack) || self.asked.values().any(|(_, asked)| is_copy(asked))
    }

    /// The row of a pack; none for a wrong one.
    pub(super) fn pack_row(&self, number: u64) -> Result<Option<PackRow>, Errno> {
        let row = self.files.tree().get(&Key::Pack(number).encode())?;
        Ok(row.and_then(|row| PackRow::decode(&row).ok()))
    }

    /// The row of a tombstone; none for a wrong one.
    pub(super) fn tombstone_row(&self, number: u64) -> Result<Option<TombstoneRow>, Errno> {
        let row = self.files.tree().get(&Key::Tombstone(number).encode())?;
        Ok(row.and_then(|row| TombstoneRow::decode(&row).ok()))
    }
}

/// A mail that is to be removed: its place, and its id.
pub(super) type Doomed = (MailCopy, MailId);

/// Mails by their mailboxes, each once.
pub(super) fn by_mailbox(
    doomed: impl IntoIterator<Item = Doomed>,
) -> BTreeMap<(u16, u16), BTreeSet<(u32, MailId)>> {
    let mut all: BTreeMap<(u16, u16), BTreeSet<(u32, MailId)>> = BTreeMap::new();
    for (copy, mail) in doomed {
        let of = all.entry((copy.account, copy.mailbox));
        of.or_default().insert((copy.uid, mail));
    }
    all
}
