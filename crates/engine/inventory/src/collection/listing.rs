//! What a collection keeps of the listings of accounts: each slice is compared with rows at once, and only mails that no row
//! names stay in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::format::{MailCopy, MailId, Subject};
use crate::survey::{Seen, Survey};

/// Orphans and duplicates that a run deals with; the next run finds the others.
pub const STRAYS_MAX: usize = 10_000;
/// Mails of pages that a run looks at.
pub const PAGES_MAX: usize = 100_000;

/// A second mail of equal id.
#[derive(Debug, Clone, Copy)]
pub struct Duplicate {
    /// The number of the pack.
    pub pack: u64,
    /// The subject of both.
    pub subject: Subject,
    /// The copy that stays.
    pub kept: MailCopy,
    /// The second mail.
    pub extra: MailCopy,
}

/// What a collection knows of the mails of accounts.
#[derive(Debug, Default)]
pub struct Listing {
    numbers: BTreeMap<(u16, u16), u32>,
    /// Accounts that were not read whole.
    pub unread: BTreeMap<u16, String>,
    /// Mails that were listed and not looked at.
    pub arrived: VecDeque<(MailCopy, Seen)>,
    /// Mails of the volume that no row names.
    pub orphans: Vec<(Subject, MailCopy)>,
    /// Second mails of packs.
    pub duplicates: Vec<Duplicate>,
    /// Mails of pages without a row.
    pub stray_pages: Vec<(Subject, MailCopy)>,
    /// The lead's log and pages.
    pub log: Vec<(u32, Subject)>,
    /// Mails of pages of the lead.
    pub pages: Vec<(u32, Subject)>,
    /// Commits and pages of further metadata accounts.
    pub copies: Vec<(MailCopy, Subject)>,
    /// Key slots of all accounts.
    pub slots: Vec<(Subject, MailCopy)>,
    /// Whether there is more than the bounds allow.
    pub has_more: bool,
}

impl Listing {
    /// The numbers of a mailbox as listed.
    pub fn uid_validity(&self, account: u16, mailbox: u16) -> Option<u32> {
        self.numbers.get(&(account, mailbox)).copied()
    }

    /// Notes the numbers of a mailbox.
    #[cfg(test)]
    pub(crate) fn number(&mut self, account: u16, mailbox: u16, uid_validity: u32) {
        self.numbers.insert((account, mailbox), uid_validity);
    }

    /// Takes what a survey has listed so far.
    pub fn take(&mut self, survey: &mut Survey) {
        survey.drain(&mut |copy, seen| self.arrived.push_back((copy, seen)));
    }

    /// The survey is over.
    pub fn end(&mut self, survey: Survey) {
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

    /// Adds one up to a bound; one beyond the bound is left to the next run.
    pub fn note<T>(all: &mut Vec<T>, one: T, max: usize, has_more: &mut bool) {
        if all.len() < max {
            all.push(one);
        } else {
            *has_more = true;
        }
    }
}

/// A mail that is to be removed: its place, and its id.
pub type Doomed = (MailCopy, MailId);

/// Mails by their mailboxes, each once.
pub fn by_mailbox(
    doomed: impl IntoIterator<Item = Doomed>,
) -> BTreeMap<(u16, u16), BTreeSet<(u32, MailId)>> {
    let mut all: BTreeMap<(u16, u16), BTreeSet<(u32, MailId)>> = BTreeMap::new();
    for (copy, mail) in doomed {
        let of = all.entry((copy.account, copy.mailbox));
        of.or_default().insert((copy.uid, mail));
    }
    all
}
