//! Listed mails against rows.

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::accounts::{
    FIRST_DATA_MAILBOX, HEAD_MAILBOX, LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX,
    PAGES_MAILBOX,
};
use super::super::state::{Asked, Volume};
use super::history::LOG_MAX;
use super::listing::{Duplicate, Listing, PAGES_MAX, STRAYS_MAX};
use super::slots::SLOTS_MAX;
use crate::format::{Kind, MailCopy, PackNumber, Subject};
use crate::rows::{Key, PackRow, RowValue, TombstoneRow};

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
            LOG_COPY_MAILBOX | PAGES_COPY_MAILBOX
                if self.further_accounts().contains(&copy.account) =>
            {
                Listing::note(&mut listing.copies, (copy, subject), LOG_MAX, more)
            }
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
            HEAD_MAILBOX if subject.kind == Kind::Slot => {
                Listing::note(&mut listing.slots, (subject, copy), SLOTS_MAX, more);
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

    /// Whether a pack, or a copy of a pack for an account, is on the way.
    pub(super) fn is_under_way(&self, pack: u64, account: u16) -> bool {
        let is_copy = |asked: &Asked| matches!(asked, Asked::Copy(of, to) if *of == PackNumber(pack) && *to == account);
        self.uploads.has(pack) || self.asked.values().any(|(_, asked)| is_copy(asked))
    }

    /// The row of a pack; absent for a wrong one.
    pub(in crate::volume) fn pack_row(&self, number: u64) -> Result<Option<PackRow>, Errno> {
        let row = self.files.tree().get(&Key::Pack(number).encode())?;
        Ok(row.and_then(|row| PackRow::decode(&row).ok()))
    }

    /// The row of a tombstone; absent for a wrong one.
    pub(in crate::volume) fn tombstone_row(
        &self,
        number: u64,
    ) -> Result<Option<TombstoneRow>, Errno> {
        let row = self.files.tree().get(&Key::Tombstone(number).encode())?;
        Ok(row.and_then(|row| TombstoneRow::decode(&row).ok()))
    }
}
