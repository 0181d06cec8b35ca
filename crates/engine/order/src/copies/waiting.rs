//! All copies on further metadata accounts, and the calls that wait for copies.

use std::collections::{BTreeMap, VecDeque};

use vere_ports::files::{CallId, Reply};
use vere_units::Timestamp;

use super::Copy;
use crate::recent::Recent;

/// How far a copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorStatus {
    /// The account.
    pub account: u16,
    /// The generation up to which the account has the chain; absent while unknown.
    pub generation: Option<u64>,
    /// Commits that the account lacks, as far as known.
    pub commits_behind: u64,
    /// Mails of pages that the account lacks, as far as known.
    pub pages_behind: usize,
    /// Whether commits and pages are compared and equal, without commits of a branch that the chain has left.
    pub is_level: bool,
}

/// Copies of commits and pages, and who waits for copies.
#[derive(Debug, Default)]
pub struct Mirrors {
    /// The newest commits of the chain.
    pub recent: Recent,
    /// The copies, by account.
    pub copies: BTreeMap<u16, Copy>,
    /// Who waits until so many accounts have the commit of a generation.
    pub waiters: VecDeque<(u64, Vec<(CallId, Reply)>)>,
    /// When pages are compared again, because another mount has stored some.
    pub pages_at: Option<Timestamp>,
    /// When a mount that ends waits for copies no longer.
    pub finish_until: Option<Timestamp>,
}

impl Mirrors {
    /// A call has waited for too long: copies are no more urgent for its sake.
    pub fn give_up(&mut self, call: CallId) {
        self.waiters.retain_mut(|(_, waiters)| {
            waiters.retain(|(waiting, _)| *waiting != call);
            !waiters.is_empty()
        });
    }

    /// The calls with enough copies, where so many accounts are to have a commit.
    #[must_use]
    pub fn take_ready(&mut self, wanted: usize) -> Vec<(CallId, Reply)> {
        let mut ready = Vec::new();
        self.waiters.retain_mut(|(generation, waiters)| {
            let copies = self.copies.values();
            let have = copies.filter(|copy| copy.has().is_some_and(|has| has >= *generation));
            let is_ready = wanted == 0 || have.count() >= wanted;
            if is_ready {
                ready.append(waiters);
            }
            !is_ready
        });
        ready
    }

    /// When copies go on without an answer.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let copies = self.copies.values();
        let due = copies.filter_map(|copy| copy.due(&self.recent, now));
        let times = due.chain(self.pages_at).chain(self.finish_until);
        // What is due already waits for an account.
        times.filter(|at| *at > now).min()
    }

    /// How far the copy on an account is.
    pub fn status(&self, account: u16) -> MirrorStatus {
        let recent = &self.recent;
        let copy = self.copies.get(&account);
        let is_usable = |of: &Copy| of.is_level(recent) && !of.has_other_branch(recent);
        let behind = copy.map(|copy| copy.behind(recent)).unwrap_or_default();
        MirrorStatus {
            account,
            generation: copy.and_then(Copy::has),
            commits_behind: behind.0,
            pages_behind: behind.1,
            is_level: copy.is_some_and(is_usable),
        }
    }
}
