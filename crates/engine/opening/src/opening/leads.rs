//! Openings after a change of the lead (docs/internals/mailfs.md, "Change of the lead"): UIDs in commits of an earlier epoch
//! are those of another log, and so are those in a journal that was written under another lead.

use vere_ports::storage::Storage;

use super::log::Log;
use super::{Opening, Stage};
use crate::error::OpenError;
use crate::format::MailId;
use crate::rows::{Key, LeadRow, RowValue};
use vere_keep::record::Won;
use vere_order::found::{Found, lead_of};

impl<S: Storage> Opening<S> {
    /// Begins with a journal of another lead: the whole log is listed, and ids tell which commits the machine has seen.
    pub(super) fn begin_under_new_lead(&mut self) {
        self.stage = Stage::Newest;
        self.list(1);
    }

    /// Places in the journal and on the local disk are worth nothing where the log is another one.
    pub(super) fn forget_places(&mut self) {
        if !self.terms.is_new_lead {
            return;
        }
        self.kept.clear();
        self.remembered = self.remembered.map(Won::without_place);
        self.placed = None;
    }

    /// The volume begins under a new lead: the local disk has commits of the former log.
    pub(super) fn forget_former_log(&mut self) {
        if self.terms.is_new_lead {
            self.memory.forget();
        }
    }

    /// The epoch of the log, as far as commits tell.
    fn epoch(&self) -> u32 {
        let read = self.commits.values().flatten();
        let epochs = read.map(|found| found.record.lead_epoch);
        epochs.max().unwrap_or(0).max(self.terms.lead_epoch)
    }

    /// Whether a commit's checkpoint has UIDs of this log.
    pub(super) fn is_of_this_log(&self, found: &Found) -> bool {
        let is_elsewhere = lead_of(found).is_some_and(|of| of.account != self.terms.lead);
        found.record.lead_epoch >= self.epoch() && !is_elsewhere
    }

    /// The changes of the lead among the commits read.
    pub(super) fn changes(&self) -> Vec<(MailId, LeadRow)> {
        let read = self.commits.values().flatten();
        read.filter_map(|found| Some((found.id(), lead_of(found)?)))
            .collect()
    }

    /// The lead that the newest change names, if another one. Changes of the chain count before those that lost a race; without a
    /// chain all count.
    pub(super) fn check_lead(
        &self,
        changes: &[(MailId, LeadRow)],
        log: Option<&Log>,
    ) -> Result<(), OpenError> {
        let is_in_chain = |id: MailId| {
            let chain = log.map(|log| log.chain.iter());
            chain.is_none_or(|mut chain| chain.any(|found| found.id() == id))
        };
        let newest = |in_chain: bool| {
            let all = changes.iter();
            let all = all.filter(|(id, _)| is_in_chain(*id) == in_chain);
            all.map(|(_, lead)| *lead).max_by_key(|lead| lead.epoch)
        };
        let row = log.and_then(|log| self.lead_row(log));
        let decided = newest(true).into_iter().chain(row);
        let decided = decided.max_by_key(|lead| lead.epoch);
        let lost = newest(false);
        let lost = lost.filter(|lost| decided.is_none_or(|of| of.epoch < lost.epoch));
        match decided.filter(|of| self.is_elsewhere(of)).or(lost) {
            Some(of) if self.is_elsewhere(&of) => Err(OpenError::LeadChanged {
                account: of.account,
                epoch: of.epoch,
            }),
            _ => Ok(()),
        }
    }

    const fn is_elsewhere(&self, of: &LeadRow) -> bool {
        of.account != self.terms.lead && of.epoch >= self.terms.lead_epoch
    }

    /// The last change of the lead, as the pages and the chain have it.
    fn lead_row(&self, log: &Log) -> Option<LeadRow> {
        let changes = log.chain.iter().rev();
        let last = changes.filter_map(lead_of).next();
        last.or_else(|| {
            let row = self.pages.get(&Key::Lead.encode()).ok()??;
            LeadRow::decode(&row).ok()
        })
    }

    /// The log must be one of the epoch that the machine knows.
    pub(super) fn check_epoch(&self, log: &Log) -> Result<(), OpenError> {
        let epoch = log.chain.last().map(|found| found.record.lead_epoch);
        match epoch {
            Some(found) if found < self.terms.lead_epoch => Err(OpenError::NoLead {
                account: self.terms.lead,
                epoch: self.terms.lead_epoch,
            }),
            _ => Ok(()),
        }
    }

    /// Whether the chain lacks what the machine has seen because a change of the lead has left it out: the former lead has
    /// these commits, and they are merged when it answers. That is no rollback.
    pub(super) fn is_displaced(&self, gone: Option<Won>, log: &Log) -> bool {
        let Some(gone) = gone.filter(|_| self.terms.is_new_lead) else {
            return false;
        };
        let change = self.lead_row(log);
        change.is_some_and(|of| of.account == self.terms.lead && of.since <= gone.generation)
    }
}
