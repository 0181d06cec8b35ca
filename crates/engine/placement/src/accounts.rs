//! The accounts of a volume: groups, speeds, faults, and the numbers of their mailboxes.

use std::collections::BTreeMap;
use std::time::Duration;

use vere_ports::files::Statistics;
use vere_ports::mail_accounts::{Fault, Urgency};
use vere_units::Timestamp;

use super::rates::{Direction, Rates};
use super::scarcity::Scarcity;
use super::strategy::Strategy;
use crate::format::{Encoding, MailCopy, PackNumber};

pub use super::mailboxes::{
    FIRST_DATA_MAILBOX, HEAD_MAILBOX, LOG_COPY_MAILBOX, LOG_MAILBOX, PAGES_COPY_MAILBOX,
    PAGES_MAILBOX, copy_of, is_history, mailbox_name,
};
pub use super::terms::{AccountStatus, AccountTerms, GroupTerms};

/// How long a failing account rests, at first and at most.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(900);

/// Room of an account that tells no quota.
const UNTOLD_ROOM: u64 = 1 << 40;

/// All accounts of a volume.
#[derive(Debug)]
pub struct Accounts {
    accounts: BTreeMap<u16, Account>,
    groups: BTreeMap<u16, Group>,
    uid_validities: BTreeMap<(u16, u16), u32>,
    postponed: Vec<PackNumber>,
    /// How fast the accounts are.
    pub rates: Rates,
    /// The group that was used last.
    last: u16,
    /// The present, as of the last event.
    pub now: Timestamp,
}

#[derive(Debug)]
struct Account {
    encoding: Encoding,
    /// Present while the account fails.
    failing: Option<Failing>,
    /// What the budget of the day leaves no octets for.
    scarcity: Scarcity,
    /// Requests under way.
    asked: u32,
    /// Used octets and the limit, where told.
    quota: Option<(u64, u64)>,
    /// Octets taken since the quota was told.
    taken: u64,
    /// Whether the account has refused its last mail as read-only. Reads go on meanwhile, so the account does not fail.
    is_read_only: bool,
}

impl Account {
    fn new(terms: &AccountTerms) -> Self {
        Self {
            encoding: terms.encoding,
            failing: None,
            scarcity: Scarcity::default(),
            asked: 0,
            quota: None,
            taken: 0,
            is_read_only: false,
        }
    }
}

#[derive(Debug)]
struct Failing {
    reason: String,
    since: Timestamp,
    until: Timestamp,
    rest: Duration,
    /// Whether the account had no more room.
    is_full: bool,
}

#[derive(Debug)]
struct Group {
    members: Vec<u16>,
    strategy: Strategy,
    /// Octets of packs on the way.
    octets: usize,
}

impl Accounts {
    /// Accounts that work, and groups with the usual strategy.
    pub fn new(accounts: &[AccountTerms], groups: &[GroupTerms]) -> Self {
        let group = |terms: &GroupTerms| Group {
            members: terms.accounts.clone(),
            strategy: Strategy::default(),
            octets: 0,
        };
        Self {
            accounts: accounts
                .iter()
                .map(|terms| (terms.account, Account::new(terms)))
                .collect(),
            groups: groups
                .iter()
                .map(|terms| (terms.group, group(terms)))
                .collect(),
            uid_validities: BTreeMap::new(),
            postponed: Vec::new(),
            rates: Rates::default(),
            last: 0,
            now: Timestamp::ZERO,
        }
    }

    /// A further account; a known account stays unchanged.
    pub fn add(&mut self, terms: &AccountTerms) {
        let entry = self.accounts.entry(terms.account);
        entry.or_insert_with(|| Account::new(terms));
    }

    /// The groups are others from now on.
    pub fn regroup(&mut self, groups: &[GroupTerms]) {
        let mut before = std::mem::take(&mut self.groups);
        for terms in groups {
            let old = before.remove(&terms.group);
            let group = Group {
                members: terms.accounts.clone(),
                strategy: old.as_ref().map(|group| group.strategy).unwrap_or_default(),
                octets: old.map_or(0, |group| group.octets),
            };
            self.groups.insert(terms.group, group);
        }
    }

    /// How octets are written in an account's mails.
    pub fn encoding(&self, account: u16) -> Option<Encoding> {
        self.accounts.get(&account).map(|account| account.encoding)
    }

    /// The encodings of a group's members, each once.
    pub fn encodings(&self, group: u16) -> Vec<Encoding> {
        let members = self
            .groups
            .get(&group)
            .map_or(&[][..], |group| &group.members);
        let mut encodings = Vec::new();
        for encoding in members.iter().filter_map(|member| self.encoding(*member)) {
            if !encodings.contains(&encoding) {
                encodings.push(encoding);
            }
        }
        encodings
    }

    /// The numbers of a mailbox are told by the account. Returns whether they are new.
    pub fn number(&mut self, account: u16, mailbox: u16, uid_validity: u32) -> bool {
        let before = self.uid_validities.insert((account, mailbox), uid_validity);
        before != Some(uid_validity)
    }

    /// The UIDVALIDITY of a mailbox, as last told.
    pub fn uid_validity(&self, account: u16, mailbox: u16) -> Option<u32> {
        self.uid_validities.get(&(account, mailbox)).copied()
    }

    fn is_resting(&self, account: u16) -> bool {
        !self.may_try(account)
    }

    /// The group for the next pack: the shortest queue among those with a member that does not rest, each in turn.
    pub fn best_group(&mut self, urgency: Urgency) -> u16 {
        let last = self.last;
        let best = self.groups.iter().min_by_key(|(number, group)| {
            let mut members = group.members.iter();
            let rests = !members.any(|member| self.may(*member, urgency));
            (
                rests,
                group.octets,
                number.wrapping_sub(last.wrapping_add(1)),
            )
        });
        self.last = best.map_or(0, |(number, _)| *number);
        self.last
    }

    /// The members of a group.
    pub fn members(&self, group: u16) -> Vec<u16> {
        self.groups
            .get(&group)
            .map_or_else(Vec::new, |group| group.members.clone())
    }

    /// Whether a pack of this group can be sent to another one while every member rests.
    pub fn has_better_group(&self, than: u16, urgency: Urgency) -> bool {
        let others = self.groups.iter().filter(|(number, _)| **number != than);
        others
            .flat_map(|(_, group)| &group.members)
            .any(|member| self.may(*member, urgency))
    }

    /// The member for the next copy: the fastest or the least busy one that does not rest, and neither has the pack nor is asked.
    pub fn best_member(
        &self,
        group: u16,
        has: &[MailCopy],
        asked: &[u16],
        urgency: Urgency,
    ) -> Option<u16> {
        let members = self.groups.get(&group)?.members.iter().copied();
        members
            .filter(|member| self.may(*member, urgency) && !asked.contains(member))
            .filter(|member| has.iter().all(|copy| copy.account != *member))
            .min_by_key(|member| self.reluctance(*member, Direction::Up))
    }

    /// Copies that a write of a group waits for.
    pub fn copies_wanted(&self, group: u16, has: &[MailCopy], sync_copies: usize) -> usize {
        let Some(group) = self.groups.get(&group) else {
            return 1;
        };
        let all = group.members.len().max(1);
        if group.strategy != Strategy::All {
            return sync_copies.clamp(1, all);
        }
        let is_there =
            |member: u16| !self.is_resting(member) || has.iter().any(|copy| copy.account == member);
        let there = group.members.iter().filter(|member| is_there(**member));
        there.count().max(sync_copies).clamp(1, all)
    }

    /// A group reads and writes in another way from now on.
    pub fn set_strategy(&mut self, group: u16, strategy: Strategy) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.strategy = strategy;
        }
    }

    /// The strategies of all groups.
    pub fn strategies(&self) -> impl Iterator<Item = (u16, Strategy)> + '_ {
        let groups = self.groups.iter();
        groups.map(|(number, group)| (*number, group.strategy))
    }

    /// The time that an account needs, if that decides, and the requests under way.
    fn reluctance(&self, account: u16, direction: Direction) -> (Duration, u32) {
        let mut groups = self.groups.values();
        let is_fast = groups
            .any(|group| group.strategy == Strategy::Fast && group.members.contains(&account));
        let expected = is_fast.then(|| self.rates.expected(account, direction, self.now));
        let asked = self.accounts.get(&account);
        (
            expected.flatten().unwrap_or_default(),
            asked.map_or(u32::MAX, |account| account.asked),
        )
    }

    /// Octets of a pack are on the way to a group.
    pub fn group_begins(&mut self, group: u16, octets: usize) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.octets = group.octets.saturating_add(octets);
        }
    }

    /// The octets of a pack are not on the way any more.
    pub fn group_ends(&mut self, group: u16, octets: usize) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.octets = group.octets.saturating_sub(octets);
        }
    }

    /// How reluctantly a read uses an account.
    pub fn cost(&self, account: u16) -> (bool, Duration, u32) {
        let (time, asked) = self.reluctance(account, Direction::Down);
        (self.is_resting(account), time, asked)
    }

    /// A request is on the way to an account.
    pub fn asks(&mut self, account: u16) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.asked = account.asked.saturating_add(1);
        }
    }

    /// A request to an account has ended.
    pub fn answers(&mut self, account: u16) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.asked = account.asked.saturating_sub(1);
        }
    }

    /// An account works. Returns whether it had failed.
    pub fn answered_well(&mut self, account: u16) -> bool {
        let account = self.accounts.get_mut(&account);
        account.is_some_and(|account| account.failing.take().is_some())
    }

    /// An account tells its quota, and works if the rest is over. A full account tells its quota as well, and takes nothing for
    /// all that. Returns whether the account had failed.
    pub fn told_quota(&mut self, account: u16) -> bool {
        let failing = self.accounts.get(&account);
        let failing = failing.and_then(|account| account.failing.as_ref());
        failing.is_some_and(|failing| !failing.is_full && failing.until <= self.now)
            && self.answered_well(account)
    }

    /// An account fails, and rests for a second and twice as long each time. Returns whether it had worked before.
    pub fn failed(&mut self, account: u16, fault: &Fault) -> bool {
        let now = self.now;
        let reason = fault.to_string();
        if let Fault::Scarce(_, urgency, millis) = fault {
            // More urgent requests, and those without octets, go on.
            let wait = (now, Duration::from_millis(*millis));
            let account = self.accounts.get_mut(&account);
            return account.is_some_and(|account| account.scarcity.lacks(*urgency, reason, wait));
        }
        let Some(account) = self.accounts.get_mut(&account) else {
            return false;
        };
        let rest = account.failing.as_ref().map_or(REST_MIN, |failing| {
            // Requests that were under way together fail together.
            let grows = now >= failing.until;
            let rest = if grows {
                failing.rest.saturating_mul(2)
            } else {
                failing.rest
            };
            rest.min(REST_MAX)
        });
        let rest = match fault {
            // The account says itself how long.
            Fault::Throttled(_, millis) => Duration::from_millis(*millis),
            _ => rest,
        };
        let is_new = account.failing.is_none();
        let since = account
            .failing
            .as_ref()
            .map_or(now, |failing| failing.since);
        account.failing = Some(Failing {
            reason,
            since,
            until: now + rest,
            rest,
            is_full: matches!(fault, Fault::OverQuota(_)),
        });
        is_new
    }

    /// A pack waits until a member of its group is tried again.
    pub fn postpone(&mut self, pack: PackNumber) {
        if !self.postponed.contains(&pack) {
            self.postponed.push(pack);
        }
    }

    /// When a resting account is tried again, if work waits.
    pub fn next_trial(&self) -> Option<Timestamp> {
        let failing = self
            .accounts
            .values()
            .filter_map(|account| account.failing.as_ref());
        // An account that has rested enough is tried by the next request.
        let until = failing.map(|failing| failing.until);
        let scarce = self.accounts.values();
        let scarce = scarce.filter_map(|account| account.scarcity.next(self.now));
        let until = until.filter(|until| *until > self.now);
        until.chain(scarce).min()
    }

    /// When an account that rests may be tried again.
    pub fn rests_until(&self, account: u16) -> Option<Timestamp> {
        let failing = self.accounts.get(&account)?.failing.as_ref()?;
        Some(failing.until)
    }

    /// Packs to be tried again; those whose accounts still rest are postponed again.
    pub fn rested(&mut self) -> Vec<PackNumber> {
        std::mem::take(&mut self.postponed)
    }

    /// Whether an account may be asked now in spite of its last failure.
    pub fn may_try(&self, account: u16) -> bool {
        let Some(account) = self.accounts.get(&account) else {
            return false;
        };
        account
            .failing
            .as_ref()
            .is_none_or(|failing| failing.until <= self.now)
    }

    /// Whether an account may be asked now, and has octets for requests of this urgency.
    pub fn may(&self, account: u16, urgency: Urgency) -> bool {
        let of = self.accounts.get(&account);
        self.may_try(account) && of.is_some_and(|of| of.scarcity.admits(urgency, self.now))
    }

    /// The account has told its quota.
    pub fn quota(&mut self, account: u16, quota: Option<(u64, u64)>) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.quota = quota;
            account.taken = 0;
        }
    }

    /// The account has taken octets.
    pub fn takes(&mut self, account: u16, octets: u64) {
        if let Some(account) = self.accounts.get_mut(&account) {
            account.taken = account.taken.saturating_add(octets);
            account.is_read_only = false;
        }
    }

    /// An account has refused a mail.
    pub fn refuses_mail(&mut self, account: u16, fault: &Fault) {
        if let (Fault::ReadOnly(_), Some(account)) = (fault, self.accounts.get_mut(&account)) {
            account.is_read_only = true;
        }
    }

    /// Whether new content has no place, as far as is known: the lead is read-only, or every account with packs is.
    pub fn are_read_only(&self, lead: u16) -> bool {
        let is = |account: &u16| {
            let account = self.accounts.get(account);
            account.is_some_and(|account| account.is_read_only)
        };
        let mut members = self.groups.values().flat_map(|group| &group.members);
        is(&lead) || (!self.groups.is_empty() && members.all(is))
    }

    /// Free octets of an account that tells its quota.
    pub fn free(&self, account: u16) -> Option<u64> {
        let account = self.accounts.get(&account)?;
        let (used, limit) = account.quota?;
        Some(limit.saturating_sub(used).saturating_sub(account.taken))
    }

    /// Whether less than a fifth of an account's room is free, where the account tells.
    pub fn is_short(&self, account: u16) -> bool {
        let limit = self
            .accounts
            .get(&account)
            .and_then(|account| account.quota);
        let free = self.free(account);
        matches!((limit, free), (Some((_, limit)), Some(free)) if free < limit / 5)
    }

    /// Room of the data groups: a group has as much as its smallest member.
    pub fn room(&self) -> Statistics {
        let mut room = Statistics::default();
        for group in self.groups.values() {
            let told = group.members.iter().filter_map(|member| {
                let (_, limit) = self.accounts.get(member)?.quota?;
                Some((self.free(*member)?, limit))
            });
            let least = told.min();
            let (free, octets) = least.unwrap_or((UNTOLD_ROOM, UNTOLD_ROOM));
            room.octets = room.octets.saturating_add(octets);
            room.free = room.free.saturating_add(free);
        }
        room.inodes = u64::from(u32::MAX);
        room.inodes_free = room.inodes;
        room
    }

    /// Every account, for people.
    pub fn status(&self, now: Timestamp) -> Vec<AccountStatus> {
        let status = |(number, account): (&u16, &Account)| {
            let failing = account.failing.as_ref();
            AccountStatus {
                account: *number,
                asked: account.asked,
                failing: failing.map(|failing| failing.reason.clone()),
                failing_for: failing.map_or(Duration::ZERO, |failing| {
                    now.saturating_since(failing.since)
                }),
                next_attempt: failing.map_or(Duration::ZERO, |failing| {
                    failing.until.saturating_since(now)
                }),
                quota: account.quota,
                encoding: account.encoding,
                scarce: account.scarcity.shown(now),
                up: self.rates.octets_per_second(*number, Direction::Up),
                down: self.rates.octets_per_second(*number, Direction::Down),
            }
        };
        self.accounts.iter().map(status).collect()
    }

    /// The groups and their members.
    pub fn groups(&self) -> impl Iterator<Item = (u16, &[u16])> {
        let groups = self.groups.iter();
        groups.map(|(number, group)| (*number, group.members.as_slice()))
    }
}
