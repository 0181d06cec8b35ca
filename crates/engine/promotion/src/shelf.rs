//! A mailbox of commits as a promotion knows the mailbox, and the order of its commits.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vere_order::found::{Found, in_order, lead_of};
use vere_ports::mail_accounts::Listed;

use crate::format::commit::Checkpoint;
use crate::format::{Index, Kind, MailId, Subject};
use crate::rows::Key;

/// Mails of a mailbox, by UID.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    pub(crate) uid_validity: u32,
    /// Mails of the volume by their subjects.
    pub(crate) listed: BTreeMap<u32, Subject>,
    /// Commits that were read; absent for a mail that is no authentic commit.
    pub(crate) read: BTreeMap<u32, Option<Found>>,
    /// Mails of a key epoch that the keys lack.
    pub(crate) locked: BTreeSet<u32>,
}

/// The commits of a log in their order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// From the oldest known commit on.
    pub(crate) chain: Vec<Found>,
    /// Commits before, newest first.
    pub(crate) before: Vec<MailId>,
    /// Authentic commits outside the chain, by UID.
    pub(crate) outside: Vec<Found>,
}

impl Shelf {
    /// A listing of the whole mailbox. What was read of mails that are still there counts on.
    pub(crate) fn list(&mut self, uid_validity: u32, mails: &[Listed], kind: Kind, tag: u32) {
        if self.uid_validity != uid_validity {
            self.read.clear();
            self.locked.clear();
        }
        self.uid_validity = uid_validity;
        let subjects = mails.iter().filter_map(|mail| {
            let subject = Subject::parse(&mail.subject).ok()?;
            Some((mail.uid, subject)).filter(|_| subject.kind == kind && subject.volume == tag)
        });
        self.listed = subjects.collect();
        let listed = &self.listed;
        self.read.retain(|uid, _| listed.contains_key(uid));
    }

    /// The lowest UID of each mail.
    pub(crate) fn uids(&self) -> HashMap<MailId, u32> {
        let mut uids = HashMap::new();
        for (uid, subject) in &self.listed {
            uids.entry(subject.mail).or_insert(*uid);
        }
        uids
    }

    /// Mails without a verdict.
    pub(crate) fn unread(&self) -> impl Iterator<Item = u32> + '_ {
        let uids = self.listed.keys().copied();
        uids.filter(|uid| !self.read.contains_key(uid))
    }

    /// Whether the account took commits as a lead of a later epoch. A change that lost a race is none.
    pub(crate) fn has_led_since(&self, epoch: u32) -> bool {
        let mut commits = self.commits();
        commits.any(|found| found.record.lead_epoch > epoch && lead_of(found).is_none())
    }

    fn commits(&self) -> impl Iterator<Item = &Found> {
        self.read.values().flatten()
    }

    /// The highest epoch of the lead that a commit tells.
    pub(crate) fn lead_epoch(&self) -> u32 {
        let epochs = self.commits().map(|found| found.record.lead_epoch);
        epochs.max().unwrap_or(0)
    }

    /// The order of the commits from a given one on, or from the volume's first commit.
    pub(crate) fn order(&self, first: Option<MailId>) -> Order {
        let all = self.commits().map(copy_of).collect();
        let (chain, outside) = in_order(all, first);
        let mut others: HashMap<MailId, Found> = HashMap::new();
        for found in outside {
            others.entry(found.id()).or_insert(found);
        }
        let mut before = Vec::new();
        let mut parent = chain.first().map(|first| first.record.parent);
        // Each commit leaves the map, so that a circle ends.
        while let Some(found) = parent.and_then(|parent| others.remove(&parent)) {
            before.push(found.id());
            parent = Some(found.record.parent);
        }
        let ids: BTreeSet<MailId> = chain.iter().map(Found::id).collect();
        let mut outside: Vec<Found> = others.into_values().collect();
        outside.retain(|found| !ids.contains(&found.id()));
        outside.sort_by_key(|found| found.uid);
        Order {
            chain,
            before,
            outside,
        }
    }

    /// Whether the volume's first commit is there.
    pub(crate) fn has_first(&self) -> bool {
        self.commits()
            .any(|found| found.record.parent == MailId::NONE)
    }

    /// Checkpoints with the commits that they cover, the newest first. `is_lead` tells whether UIDs in records are those of
    /// the mailbox; in a copy the generation tells the commit, since a copy has commits of the chain alone.
    pub(crate) fn checkpoints(&self, account: u16, is_lead: bool) -> Vec<(Checkpoint, MailId)> {
        // A change to another lead has the places of that lead.
        let is_here = |found: &&Found| {
            let lead = lead_of(found);
            !is_lead || lead.is_none_or(|lead| lead.account == account)
        };
        let epochs = self.commits().filter(is_here);
        let epoch = epochs.map(|found| found.record.lead_epoch).max();
        let records = self.commits().filter(is_here);
        let records = records.filter(|found| Some(found.record.lead_epoch) == epoch);
        let mut named: Vec<Checkpoint> = Vec::new();
        for checkpoint in records.filter_map(|found| found.record.checkpoint) {
            if !named.contains(&checkpoint) {
                named.push(checkpoint);
            }
        }
        named.sort_by_key(|checkpoint| std::cmp::Reverse(checkpoint.covers));
        let covered = |checkpoint: &Checkpoint| {
            let mut all = self.commits();
            all.find(|found| {
                let is_place = !is_lead || found.uid == checkpoint.covered_uid;
                is_place && found.record.generation == checkpoint.covers.get()
            })
            .map(Found::id)
        };
        let with_commit = named.into_iter();
        with_commit
            .filter_map(|checkpoint| Some((checkpoint, covered(&checkpoint)?)))
            .collect()
    }
}

/// A commit without content and rows, but for that of the lead: a log of any length fits into memory.
pub(crate) fn light(mut found: Found) -> Found {
    let lead = Key::Lead.encode();
    found.record.rows.retain(|row| row.key == lead);
    found.record.rows.shrink_to_fit();
    found.record.index = Index::default();
    found
}

fn copy_of(found: &Found) -> Found {
    Found {
        uid: found.uid,
        head: found.head,
        octets: found.octets,
        record: found.record.clone(),
    }
}
