//! The next step of a promotion, as its mailboxes are. The state of a promotion is in the accounts alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use vere_order::found::{Found, lead_of};
use vere_placement::accounts::PAGES_MAILBOX;

use crate::error::PromotionError;
use crate::format::commit::Checkpoint;
use crate::format::{Locator, MailCopy, MailId};
use crate::rows::LeadRow;
use crate::shelf::{Order, Shelf};

/// The account and the mailboxes that have the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The lead, which answers: the change is decided by its log.
    Lead(u16),
    /// A copy on this account, while the lead does not answer.
    Copy(u16),
}

impl Source {
    pub(crate) const fn account(self) -> u16 {
        match self {
            Self::Lead(account) | Self::Copy(account) => account,
        }
    }
}

/// The four mailboxes of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    FromLog,
    FromPages,
    ToLog,
    ToPages,
}

/// UIDs, and the mails there.
type Mails = Vec<(u32, MailId)>;

/// A step.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The log of the new lead has the change in its chain.
    Done(LeadRow),
    /// These mails are missing.
    Copy(Which, Which, Mails),
    /// These mails are in the way.
    Remove(Which, Vec<u32>),
    /// Everything is there but the change.
    Change(Draft),
}

/// The commit of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) lead: LeadRow,
    pub(crate) parent: MailId,
    /// The key epoch.
    pub(crate) epoch: u16,
    /// The checkpoint with its places on the new lead.
    pub(crate) checkpoint: Option<Checkpoint>,
}

/// The mailboxes as they are.
pub(crate) struct View<'a> {
    pub(crate) source: Source,
    pub(crate) to: u16,
    pub(crate) shelves: &'a BTreeMap<Which, Shelf>,
    /// Mails that cannot be copied, because they are damaged or forged.
    pub(crate) refused: &'a HashSet<MailId>,
}

impl View<'_> {
    /// The next step.
    pub(crate) fn plan(&self) -> Result<Plan, PromotionError> {
        let none = Shelf::default();
        let shelf = |which| self.shelves.get(&which).unwrap_or(&none);
        let (log, to_log) = (shelf(Which::FromLog), shelf(Which::ToLog));
        let is_lead = matches!(self.source, Source::Lead(_));
        let checkpoints = log.checkpoints(self.source.account(), is_lead);
        let checkpoints = self.with_pages(checkpoints);
        let first = checkpoints.first().map(|(_, commit)| *commit);
        let order = log.order(first.filter(|_| !log.has_first()));
        let Some(head) = order.chain.last() else {
            return Err(self.nothing(log));
        };
        self.check_readable(log, head)?;
        if let Some(plan) = Self::lost_changes(&order, is_lead) {
            return Ok(plan);
        }
        if let Some(lead) = self.decided(to_log, &order) {
            return Ok(Plan::Done(lead));
        }
        if to_log.has_led_since(self.epoch_before(&order)) {
            return Err(PromotionError::Leads(self.to));
        }
        if let Some(lead) = lead_of(head).filter(|lead| is_lead && lead.account != self.to)
            && lead.account != self.source.account()
        {
            return Err(PromotionError::Elsewhere(lead.account));
        }
        if let Some(plan) = self.missing(&order) {
            return Ok(plan);
        }
        self.check_whole(&order)?;
        if let Some(plan) = self.in_the_way(&order) {
            return Ok(plan);
        }
        let checkpoint = self.checkpoint_there(&checkpoints, &order);
        if checkpoint.is_none() && !log.has_first() {
            return Err(PromotionError::NoState(self.source.account()));
        }
        let epochs = log.lead_epoch().max(to_log.lead_epoch());
        let lead = LeadRow {
            account: self.to,
            epoch: epochs.saturating_add(1),
            since: head.record.generation.saturating_add(1),
        };
        Ok(Plan::Change(Draft {
            lead,
            parent: head.id(),
            epoch: head.head.epoch,
            checkpoint,
        }))
    }

    fn nothing(&self, log: &Shelf) -> PromotionError {
        let account = self.source.account();
        match log.read.values().any(Option::is_some) {
            true => PromotionError::NoState(account),
            false => PromotionError::NoVolume(account),
        }
    }

    /// With keys of an earlier epoch the chain would seem to end too early.
    fn check_readable(&self, log: &Shelf, head: &Found) -> Result<(), PromotionError> {
        let account = self.source.account();
        let mut subjects = log.locked.iter().filter_map(|uid| {
            let subject = log.listed.get(uid)?;
            Some((*uid, subject.generation?))
        });
        match subjects.find(|(_, generation)| *generation > head.record.generation) {
            Some((uid, generation)) => Err(PromotionError::Unreadable {
                account,
                uid,
                generation,
            }),
            None => Ok(()),
        }
    }

    /// The new lead needs each commit from the checkpoint on.
    fn check_whole(&self, order: &Order) -> Result<(), PromotionError> {
        let there = self.uids(Which::ToLog);
        let mut chain = order.chain.iter().map(Found::id);
        match chain.find(|mail| !there.contains_key(mail)) {
            Some(mail) => Err(PromotionError::Damaged(self.source.account(), mail)),
            None => Ok(()),
        }
    }

    /// Checkpoints whose root the source or the new lead has.
    fn with_pages(&self, named: Vec<(Checkpoint, MailId)>) -> Vec<(Checkpoint, MailId)> {
        let pages = [Which::FromPages, Which::ToPages].iter();
        let shelves = pages.filter_map(|of| self.shelves.get(of));
        let mails = shelves.flat_map(|shelf| shelf.listed.values());
        let mails: HashSet<MailId> = mails.map(|subject| subject.mail).collect();
        let has = |mail| mails.contains(&mail) && !self.refused.contains(&mail);
        let named = named.into_iter();
        named.filter(|(of, _)| has(of.root.mail)).collect()
    }

    /// The change, if the new lead has one in its chain that is newer than the commits of the source.
    fn decided(&self, to_log: &Shelf, order: &Order) -> Option<LeadRow> {
        let first = order.chain.first().map(Found::id);
        let there = to_log.order(first.filter(|_| !to_log.has_first()));
        let epoch = self.epoch_before(order);
        let mut changes = there.chain.iter().rev().filter_map(lead_of);
        changes.find(|lead| lead.account == self.to && lead.epoch > epoch)
    }

    /// The epoch of the source before a change to the new lead.
    fn epoch_before(&self, order: &Order) -> u32 {
        let is_change = |found: &&Found| lead_of(found).is_some_and(|of| of.account == self.to);
        let mut before = order.chain.iter().rev().skip_while(is_change);
        before.next().map_or(0, |found| found.record.lead_epoch)
    }

    /// Changes that lost a race leave the log of the lead: nobody should follow them.
    fn lost_changes(order: &Order, is_lead: bool) -> Option<Plan> {
        let lost = order.outside.iter().filter(|of| lead_of(of).is_some());
        let lost: Vec<u32> = lost.map(|found| found.uid).collect();
        (is_lead && !lost.is_empty()).then_some(Plan::Remove(Which::FromLog, lost))
    }

    fn uids(&self, which: Which) -> HashMap<MailId, u32> {
        let shelf = self.shelves.get(&which);
        shelf.map(Shelf::uids).unwrap_or_default()
    }

    /// Pages come first, then commits of the chain, then all others, which wait for a merge or have content.
    fn missing(&self, order: &Order) -> Option<Plan> {
        let lacks = |there: &HashMap<MailId, u32>, mail: &MailId| {
            !there.contains_key(mail) && !self.refused.contains(mail)
        };
        let there = self.uids(Which::ToPages);
        let here = self.uids(Which::FromPages).into_iter();
        let mut pages: Mails = here.map(|(mail, uid)| (uid, mail)).collect();
        pages.retain(|(_, mail)| lacks(&there, mail));
        pages.sort_unstable();
        if !pages.is_empty() {
            return Some(Plan::Copy(Which::FromPages, Which::ToPages, pages));
        }
        let (here, there) = (self.uids(Which::FromLog), self.uids(Which::ToLog));
        let before = order.before.iter().rev().copied();
        let chain = before.chain(order.chain.iter().map(Found::id));
        let others = order
            .outside
            .iter()
            .filter(|found| lead_of(found).is_none());
        let others: Vec<MailId> = others.map(Found::id).collect();
        for mails in [chain.collect(), others] {
            let lacking = mails.into_iter().filter(|mail| lacks(&there, mail));
            let placed: Mails = lacking
                .filter_map(|mail| Some((*here.get(&mail)?, mail)))
                .collect();
            if !placed.is_empty() {
                return Some(Plan::Copy(Which::FromLog, Which::ToLog, placed));
            }
        }
        None
    }

    /// Mails that would give the chain another course: changes, and commits before their elder siblings on the new lead, as from an
    /// earlier time as lead. The latter are appended once more before they go.
    fn in_the_way(&self, order: &Order) -> Option<Plan> {
        let to_log = self.shelves.get(&Which::ToLog)?;
        let there = self.uids(Which::ToLog);
        let children: HashMap<MailId, (u32, MailId)> = order
            .chain
            .iter()
            .filter_map(|found| {
                let uid = *there.get(&found.id())?;
                Some((found.record.parent, (uid, found.id())))
            })
            .collect();
        let (mut again, mut removed): (Mails, Vec<u32>) = (Vec::new(), Vec::new());
        for (uid, found) in &to_log.read {
            let Some(found) = found else {
                continue;
            };
            let Some((elder, child)) = children.get(&found.record.parent) else {
                continue;
            };
            if *child == found.id() || uid > elder {
                continue;
            }
            let mut mails = to_log.listed.range(elder..);
            if lead_of(found).is_some() || mails.any(|(_, of)| of.mail == found.id()) {
                removed.push(*uid);
            } else {
                again.push((*uid, found.id()));
            }
        }
        if !again.is_empty() {
            return Some(Plan::Copy(Which::ToLog, Which::ToLog, again));
        }
        (!removed.is_empty()).then_some(Plan::Remove(Which::ToLog, removed))
    }

    /// The newest checkpoint of the chain, with the places of its commit and its root on the new lead.
    fn checkpoint_there(
        &self,
        checkpoints: &[(Checkpoint, MailId)],
        order: &Order,
    ) -> Option<Checkpoint> {
        let (commits, pages) = (self.uids(Which::ToLog), self.uids(Which::ToPages));
        let is_in_chain = |commit: &MailId| {
            order.before.contains(commit) || order.chain.iter().any(|of| of.id() == *commit)
        };
        let placed = |(checkpoint, commit): &(Checkpoint, MailId)| {
            let root = Locator {
                copy: MailCopy {
                    account: self.to,
                    mailbox: PAGES_MAILBOX,
                    uid: *pages.get(&checkpoint.root.mail)?,
                },
                ..checkpoint.root
            };
            Some(Checkpoint {
                covered_uid: *commits.get(commit)?,
                root,
                ..*checkpoint
            })
        };
        let in_chain = checkpoints.iter().filter(|(_, of)| is_in_chain(of));
        in_chain.filter_map(placed).next()
    }
}
