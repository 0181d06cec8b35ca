//! Changes of the lead: the log of another account orders the commits from a commit of kind 4 on
//! (docs/internals/mailfs.md, "Change of the lead"). A mount stops there, and opens again under the new lead.

use std::time::Duration;

use vere_opening::Create;
use vere_ports::files::Errno;
use vere_ports::mail_accounts::AccountId;
use vere_ports::storage::Storage;

use super::chain::Child;
use super::found::{Found, lead_of};
use super::state::Volume;
use super::step::Notice;
use crate::format::commit::RowChange;
use crate::rows::{Key, LeadRow, RowValue};

impl<S: Storage> Volume<S> {
    /// Takes over what the rows tell of the lead.
    pub(super) fn read_lead(&mut self) -> Result<(), Errno> {
        let row = self.fact(&Key::Lead.encode())?;
        let row = row.and_then(|row| LeadRow::decode(&row).ok());
        self.lead = row.filter(|row| row.account == self.terms.lead);
        Ok(())
    }

    /// The lead, and its epoch.
    #[must_use]
    pub fn lead(&self) -> (u16, u32) {
        (self.terms.lead, self.lead_epoch())
    }

    /// A commit of the chain has changed rows: that of the lead may be among them.
    pub(super) fn heed_lead_row(&mut self, rows: &[RowChange]) -> Result<(), Errno> {
        let key = Key::Lead.encode();
        match rows.iter().any(|row| row.key == key) {
            true => self.read_lead(),
            false => Ok(()),
        }
    }

    /// The epoch of the lead.
    pub(super) fn lead_epoch(&self) -> u32 {
        let known = self.lead.map_or(1, |lead| lead.epoch);
        known.max(self.terms.lead_epoch)
    }

    /// The generation from which on UIDs that name commits are those of the lead's log.
    pub(super) fn lead_since(&self) -> u64 {
        self.lead.map_or(0, |lead| lead.since)
    }

    /// A commit, as the order wants it. What a commit of an earlier lead says about checkpoints is nothing about this chain: a
    /// commit that a former lead took behind the change may know a later generation.
    pub(super) fn child_of(&self, found: &Found) -> Child {
        let mut child = found.child();
        if found.record.lead_epoch < self.lead_epoch()
            && found.record.generation >= self.lead_since()
        {
            child.covers = 0;
        }
        child
    }

    /// The mount stops at a commit that names another lead, wherever the commit is: what is sent to the former log from then on
    /// would lie outside the chain.
    pub(super) fn heed_lead(&mut self, found: &Found) {
        let Some(lead) = lead_of(found) else {
            return;
        };
        if self.is_newer(lead) {
            self.chain.stand();
            self.fail(Notice::LeadChanged {
                lead: AccountId(lead.account),
                epoch: lead.epoch,
            });
        }
    }

    /// The account that may become the lead, where the lead has failed for so long: an account whose copy has every change
    /// that the mount knows, and all names.
    #[must_use]
    pub fn successor(&self, patience: Duration) -> Option<u16> {
        if self.is_stopped() || self.is_unconfirmed() {
            return None;
        }
        let mut accounts = self.accounts.status(self.now.steady).into_iter();
        let lead = accounts.find(|of| of.account == self.terms.lead)?;
        lead.failing.as_ref()?;
        if lead.failing_for < patience {
            return None;
        }
        let (_, generation) = self.chain.head();
        let mut mirrors = self.mirror_status().into_iter();
        let whole = mirrors.find(|of| of.is_level && of.generation >= Some(generation))?;
        self.accounts
            .may_try(whole.account)
            .then_some(whole.account)
    }

    /// What a promotion needs to know besides the terms.
    #[must_use]
    pub fn facts_of_opening(&self) -> Create {
        Create {
            volume: self.seals.volume,
            epoch: self.seals.epoch,
            keys: self.seals.keys.clone(),
            machine: self.machine.clone(),
        }
    }

    /// Whether a change counts before the lead of this mount: of two with an equal epoch the lower account does.
    pub(super) fn is_newer(&self, lead: LeadRow) -> bool {
        let (account, epoch) = self.lead();
        let is_equal = lead.epoch == epoch && epoch > 1;
        lead.account != account && (lead.epoch > epoch || is_equal && lead.account < account)
    }

    /// The account that another machine has made the lead, and its epoch, if the mount has stopped for that.
    #[must_use]
    pub const fn other_lead(&self) -> Option<(u16, u32)> {
        match &self.read_only {
            Some(Notice::LeadChanged { lead, epoch }) => Some((lead.0, *epoch)),
            _ => None,
        }
    }
}
