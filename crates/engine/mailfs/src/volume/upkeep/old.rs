//! Collections of commits after a lost race, and of old key slots.

use std::collections::BTreeSet;

use vere_ports::files::Errno;
use vere_ports::storage::Storage;

use super::super::facts::FactsChange;
use super::super::state::Volume;
use super::collect::{CollectReport, Present};
use super::inspect::Suspect;
use super::losers::Losers;
use super::slots::{Slots, number_of};
use super::state::Garbage;
use crate::format::{MailId, Subject};

impl<S: Storage> Volume<S> {
    /// Whether a row has the mail of a subject. An unreadable row keeps the mail.
    pub(super) fn has_row_of(&self, subject: &Subject) -> bool {
        let row = self.pack_row(subject.pack.0);
        row.map_or(true, |row| row.is_some_and(|row| row.mail == subject.mail))
    }

    /// Looks for losers of long ago. Returns the mails to be read.
    pub(super) fn find_losers(&self, garbage: &mut Garbage) -> Vec<Suspect> {
        let has_row = |subject: &Subject| self.has_row_of(subject);
        let losers = Losers::of(&garbage.history, &garbage.listing.log, &has_row);
        let lead = self.terms.lead;
        let numbers = garbage
            .listing
            .uid_validity(lead, super::super::accounts::LOG_MAILBOX);
        let suspects = numbers.map(|numbers| losers.suspects(lead, numbers).collect());
        garbage.losers = losers;
        suspects.unwrap_or_default()
    }

    /// Gives old slots tombstones, and brings accounts without some slot of the list up to date. Returns the list.
    pub(super) fn plan_slots(
        &mut self,
        garbage: &mut Garbage,
        present: Present,
        report: &mut CollectReport,
    ) -> Result<BTreeSet<MailId>, Errno> {
        let listed = self.listed_slots()?;
        let listing = &garbage.listing;
        let numbers = self.terms.accounts.iter().map(|terms| terms.account);
        let read = numbers.filter(|account| !listing.unread.contains_key(account));
        let slots = Slots::of(&listing.slots, &listed, &garbage.slots, read);
        for (mail, (subject, copies)) in &slots.superseded {
            let subject = Subject {
                pack: number_of(*mail),
                ..*subject
            };
            let earlier = self.tombstone_row(subject.pack.0)?;
            let is_buried = |copy| {
                earlier
                    .as_ref()
                    .is_some_and(|row| row.copies.contains(copy))
            };
            for copy in copies.iter().filter(|copy| !is_buried(copy)) {
                if !garbage.plan.is_full() {
                    let of = (&subject, *copy);
                    garbage
                        .plan
                        .add_orphan(of, earlier.as_ref(), present, report);
                }
            }
        }
        self.complete_slots(&slots.behind, report)?;
        Ok(listed)
    }

    /// Accounts that missed a change of keys get the slots that count and the facts; the next run finds their old slots.
    fn complete_slots(
        &mut self,
        behind: &BTreeSet<u16>,
        report: &mut CollectReport,
    ) -> Result<(), Errno> {
        if behind.is_empty() || self.read_only.is_some() {
            return Ok(());
        }
        // Nobody waits for the result of an earlier run's change.
        if let Some(Err(reason)) = self.take_abandoned() {
            for account in behind {
                let of = report.failed.entry(*account);
                of.or_insert_with(|| format!("key slots: {reason}"));
            }
        }
        let accounts = self.terms.accounts.iter();
        let accounts = accounts.filter(|terms| behind.contains(&terms.account));
        let change = FactsChange {
            accounts: accounts.cloned().collect(),
            ..FactsChange::default()
        };
        self.change_facts(self.now, change).map(|_begun| ())
    }
}
