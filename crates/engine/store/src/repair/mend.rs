//! Mending disagreements between rows, counters and bodies.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, MetaError, Partition};

use super::{Broken, LostMessage, PARTITIONS, RepairReport, Told};
use crate::batch::Change;
use crate::model::{BlobId, MailboxId, MailboxName, ModSeq, Uid};
use crate::rows::{
    AccountHead, KeptCount, KeptRow, MailboxHead, MailboxRow, MessageRow, encode_expunged, keys,
};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A mailbox as its partition has it.
#[derive(Debug)]
struct Known {
    owner: Option<AccountName>,
    uid_validity: u32,
    messages: u32,
}

/// Goes through the partitions of new metadata.
#[derive(Debug)]
pub(super) struct Mending {
    bodies: Vec<u64>,
    nameless: BTreeSet<u64>,
    broken: Broken,
    /// Mailboxes with a row of counters.
    known: BTreeMap<u64, Known>,
    /// Account and name of each listed mailbox.
    listed: HashMap<u64, (AccountName, MailboxName)>,
    /// Deleted mailboxes that are not empty yet.
    purged: HashSet<u64>,
    /// Deleted mailboxes whose messages are kept.
    aside: HashSet<u64>,
    /// Accounts that have a list.
    accounts: HashSet<AccountName>,
    queue: VecDeque<Partition>,
    after: Option<Partition>,
}

impl Mending {
    pub(super) fn new<M: MetaEngine>(
        meta: &M,
        told: Told,
        broken: Broken,
    ) -> Result<Self, MetaError> {
        let mut mending = Self {
            bodies: told.bodies,
            nameless: told.nameless.unwrap_or_default(),
            broken,
            known: BTreeMap::new(),
            listed: HashMap::new(),
            purged: HashSet::new(),
            aside: HashSet::new(),
            accounts: HashSet::new(),
            queue: VecDeque::new(),
            after: None,
        };
        while let Some(partition) = mending.next(meta)? {
            match &partition {
                Partition::Account(name) => mending.learn_list(meta, &partition, name)?,
                Partition::Mailbox(id) => mending.learn_mailbox(meta, &partition, *id)?,
            }
        }
        mending.after = None;
        Ok(mending)
    }

    /// Returns the next partition to mend.
    pub(super) fn next<M: MetaEngine>(&mut self, meta: &M) -> Result<Option<Partition>, MetaError> {
        if self.queue.is_empty() {
            self.queue = meta.partitions(self.after.as_ref(), PARTITIONS)?.into();
        }
        let next = self.queue.pop_front();
        self.after.clone_from(&next);
        Ok(next)
    }

    fn learn_list<M: MetaEngine>(
        &mut self,
        meta: &M,
        partition: &Partition,
        name: &AccountName,
    ) -> Result<(), MetaError> {
        self.accounts.insert(name.clone());
        meta.scan(partition, keys::MAILBOXES, &mut |key, value| {
            if let (Some(mailbox), Some(row)) = (keys::name_of(key), MailboxRow::decode(value)) {
                self.listed.insert(row.id.0, (name.clone(), mailbox));
            }
            true
        })?;
        meta.scan(partition, keys::ASIDE, &mut |key, _| {
            self.aside
                .extend(keys::mailbox_of(key).map(|mailbox| mailbox.0));
            true
        })?;
        meta.scan(partition, keys::PURGES, &mut |key, _| {
            self.purged
                .extend(keys::mailbox_of(key).map(|mailbox| mailbox.0));
            true
        })
    }

    fn learn_mailbox<M: MetaEngine>(
        &mut self,
        meta: &M,
        partition: &Partition,
        id: u64,
    ) -> Result<(), MetaError> {
        let Some(head) = meta.row(partition, keys::HEAD)? else {
            return Ok(());
        };
        let head = MailboxHead::decode(&head).unwrap_or_else(|| MailboxHead::new(1));
        let owner = meta.row(partition, keys::OWNER)?;
        let owner = owner.and_then(|owner| AccountName::parse(str::from_utf8(&owner).ok()?).ok());
        let listed = || self.listed.get(&id).map(|(account, _)| account.clone());
        let known = Known {
            owner: owner.or_else(listed),
            uid_validity: head.uid_validity,
            messages: head.messages,
        };
        self.known.insert(id, known);
        Ok(())
    }

    /// Returns the change that mends a partition, with all its rows; absent if the partition is intact.
    pub(super) fn partition<M: MetaEngine>(
        &mut self,
        meta: &M,
        partition: &Partition,
        report: &mut RepairReport,
    ) -> Result<Option<Change>, MetaError> {
        let mut rows = Rows::new();
        meta.scan(partition, &[], &mut |key, value| {
            rows.insert(key.to_vec(), value.to_vec());
            true
        })?;
        let changed = match partition {
            Partition::Account(name) => self.account(name, &mut rows, report),
            Partition::Mailbox(id) => self.mailbox(*id, &mut rows, report),
        };
        if self.broken.gone.contains(&partition.encode()) {
            match partition {
                Partition::Account(name) => report.lists_lost.push(name.clone()),
                Partition::Mailbox(id) => report.changes_lost.push(MailboxId(*id)),
            }
        }
        if !changed && !self.broken.has(partition) {
            return Ok(None);
        }
        report.mended += 1;
        Ok(Some(whole(partition, meta.version(partition)?, rows)))
    }

    /// Returns the changes for accounts whose list of mailboxes is lost. Call this after the last partition.
    pub(super) fn finish(mut self, report: &mut RepairReport) -> Vec<Change> {
        let owners: BTreeSet<_> = self
            .known
            .values()
            .filter_map(|known| known.owner.clone())
            .filter(|owner| !self.accounts.contains(owner))
            .map(|owner| owner.to_string())
            .collect();
        let mut changes = Vec::new();
        for owner in owners
            .iter()
            .filter_map(|owner| AccountName::parse(owner).ok())
        {
            let mut rows = Rows::new();
            self.account(&owner, &mut rows, report);
            report.lists_lost.push(owner.clone());
            report.mended += 1;
            changes.push(whole(&Partition::Account(owner), 0, rows));
        }
        report.nameless = std::mem::take(&mut self.nameless)
            .into_iter()
            .map(BlobId)
            .collect();
        changes
    }

    fn account(&mut self, name: &AccountName, rows: &mut Rows, report: &mut RepairReport) -> bool {
        report.accounts += 1;
        let before = rows.clone();
        rows.retain(|key, value| {
            if key.starts_with(keys::ASIDE) {
                return keys::mailbox_of(key).is_some_and(|id| self.is_of(id, name));
            }
            if !key.starts_with(keys::MAILBOXES) {
                return true;
            }
            let mailbox = keys::name_of(key);
            let there = MailboxRow::decode(value).is_some_and(|row| self.is_of(row.id, name));
            if let Some(mailbox) = mailbox.clone().filter(|_| !there) {
                report.names_gone.push((name.clone(), mailbox));
            }
            there && mailbox.is_some()
        });
        let own = self
            .known
            .iter()
            .filter(|(_, known)| known.owner.as_ref() == Some(name));
        let mut greatest = 0;
        for (id, known) in own {
            greatest = greatest.max(known.uid_validity);
            let lost = !self.listed.contains_key(id) && !self.is_deleted(*id);
            // An empty mailbox is the leftover of an interrupted creation.
            if !lost || known.messages == 0 {
                continue;
            }
            if let Ok(mailbox) = MailboxName::new(&format!("Recovered-{id:x}")) {
                let row = MailboxRow {
                    id: MailboxId(*id),
                    special_use: None,
                };
                rows.insert(keys::mailbox(&mailbox), row.encode());
                report.names_made.push((name.clone(), mailbox));
            }
        }
        let head = rows.get(keys::ACCOUNT_HEAD);
        let mut head = head
            .and_then(|row| AccountHead::decode(row))
            .unwrap_or_default();
        if head.uid_validity < greatest {
            head.uid_validity = greatest;
            rows.insert(keys::ACCOUNT_HEAD.to_vec(), head.encode());
        }
        *rows != before
    }

    /// Whether a mailbox was deleted, and is not empty yet or kept.
    fn is_deleted(&self, id: u64) -> bool {
        self.purged.contains(&id) || self.aside.contains(&id)
    }

    /// Whether a mailbox exists and belongs to an account.
    fn is_of(&self, id: MailboxId, name: &AccountName) -> bool {
        let known = self.known.get(&id.0);
        known.is_some_and(|known| known.owner.as_ref() == Some(name))
    }

    fn mailbox(&mut self, id: u64, rows: &mut Rows, report: &mut RepairReport) -> bool {
        let Some(known) = self.known.get(&id) else {
            // The mailbox was deleted, or lost its counters: any remaining rows go.
            let any = !rows.is_empty();
            rows.clear();
            return any;
        };
        let listed = self.listed.get(&id);
        if listed.is_none() && known.messages == 0 && !self.is_deleted(id) {
            rows.clear();
            return true;
        }
        let nobodys = known.owner.is_none() && !self.is_deleted(id);
        let before = rows.clone();
        if let Some(owner) = &known.owner {
            rows.insert(keys::OWNER.to_vec(), owner.to_string().into_bytes());
        }
        let at = LostMessage {
            account: known.owner.clone(),
            mailbox: listed.map(|(_, mailbox)| mailbox.clone()),
            id: MailboxId(id),
            uid: Uid::FIRST,
            body: BlobId(0),
            size: 0,
            arrived: 0,
        };
        let uid_validity = known.uid_validity;
        let head = rows
            .get(keys::HEAD)
            .and_then(|row| MailboxHead::decode(row));
        let mut head = head.unwrap_or_else(|| MailboxHead::new(uid_validity));
        let (messages, gone) = self.sift(rows, &at, report);
        if nobodys && messages.is_empty() {
            // A mailbox without owner fits in no list, and this mailbox has no messages left.
            rows.clear();
            return true;
        }
        let last_kept = self.sift_kept(rows, &mut head, report);
        if self.broken.gone.contains(&Partition::Mailbox(id).encode()) {
            forget_history(&mut head, rows, &messages);
        } else if !gone.is_empty() {
            head.mod_seq = head.mod_seq.next();
            head.expunged += gone.len() as u32;
            rows.insert(keys::expunged(head.mod_seq), encode_expunged(&gone));
        }
        recount(&mut head, messages.values());
        let last = messages.keys().next_back().copied().max(last_kept);
        head.uid_next = last.map_or(head.uid_next, |last| head.uid_next.max(last.next()));
        rows.insert(keys::HEAD.to_vec(), head.encode());
        if !self.aside.contains(&id) {
            report.mailboxes += 1;
            report.messages += u64::from(head.messages);
        }
        *rows != before
    }

    /// Removes messages whose body or row is gone. Returns the remaining messages, and the UIDs of removed messages.
    fn sift(
        &mut self,
        rows: &mut Rows,
        at: &LostMessage,
        report: &mut RepairReport,
    ) -> (BTreeMap<Uid, MessageRow>, Vec<Uid>) {
        let (mut messages, mut gone) = (BTreeMap::new(), Vec::new());
        rows.retain(|key, value| {
            if !key.starts_with(keys::MESSAGES) {
                return true;
            }
            let Some(uid) = keys::uid_of(key) else {
                return false;
            };
            let row = MessageRow::decode(value);
            let body = row.map_or(0, |row| row.blob.0);
            if let Some(row) = row.filter(|_| self.bodies.binary_search(&body).is_ok()) {
                self.nameless.remove(&body);
                messages.insert(uid, row);
                return true;
            }
            gone.push(uid);
            if self.aside.contains(&at.id.0) {
                report.kept_lost += 1;
                return false;
            }
            report.lost.push(LostMessage {
                uid,
                body: BlobId(body),
                size: row.map_or(0, |row| row.size),
                arrived: row.map_or(0, |row| row.internal_date.seconds),
                ..at.clone()
            });
            false
        });
        for uid in &gone {
            rows.remove(&keys::fields(*uid));
        }
        (messages, gone)
    }
}

impl Mending {
    /// Removes kept messages whose body or row is gone, and counts the others. Returns the last UID of these.
    fn sift_kept(
        &mut self,
        rows: &mut Rows,
        head: &mut MailboxHead,
        report: &mut RepairReport,
    ) -> Option<Uid> {
        let (mut count, mut last, mut gone) = (KeptCount::default(), None, Vec::new());
        let mut kept = Rows::new();
        rows.retain(|key, value| {
            if !key.starts_with(keys::KEPT) {
                return true;
            }
            if let Some(mut row) = keys::kept_of(key).and_then(|_| KeptRow::decode(value)) {
                row.messages.retain(|(uid, message)| {
                    let is_there = self.bodies.binary_search(&message.blob.0).is_ok();
                    match is_there {
                        true => drop(self.nameless.remove(&message.blob.0)),
                        false => gone.push(*uid),
                    }
                    is_there
                });
                last = last.max(row.messages.last().map(|(uid, _)| *uid));
                let more = row.count();
                count.messages += more.messages;
                count.octets += more.octets;
                if !row.messages.is_empty() {
                    kept.insert(key.clone(), row.encode());
                }
            }
            false
        });
        rows.extend(kept);
        for uid in &gone {
            rows.remove(&keys::fields(*uid));
        }
        report.kept_lost += gone.len() as u64;
        // Unknown and none stays as an older program wrote it.
        if head.kept.is_some() || count != KeptCount::default() {
            head.kept = Some(count);
        }
        last
    }
}

/// Returns a change with all rows of a partition.
fn whole(partition: &Partition, version: u64, rows: Rows) -> Change {
    let mut change = Change::new(partition.clone(), version);
    change.clear = true;
    for (key, value) in rows {
        // Hints are no part of the log.
        let hint = matches!(partition, Partition::Account(_))
            && key.first().is_some_and(|kind| keys::is_hint(*kind));
        if !hint {
            change.put(key, value);
        }
    }
    change
}

/// Invalidates the mod-sequences that clients know of a mailbox that lost changes. Every message counts as changed
/// now, and every absent UID as expunged (RFC 7162 section 3.2.5).
fn forget_history(head: &mut MailboxHead, rows: &mut Rows, messages: &BTreeMap<Uid, MessageRow>) {
    let newest = messages.values().map(|row| row.mod_seq).max();
    head.mod_seq = ModSeq(head.mod_seq.max(newest.unwrap_or_default()).0 + 1);
    head.floor = head.mod_seq;
    head.expunged = 0;
    rows.retain(|key, _| !key.starts_with(keys::EXPUNGED));
    for (uid, row) in messages {
        let mut row = *row;
        row.mod_seq = head.mod_seq;
        rows.insert(keys::message(*uid), row.encode());
    }
}

fn recount<'a>(head: &mut MailboxHead, messages: impl Iterator<Item = &'a MessageRow>) {
    (head.messages, head.unseen, head.deleted, head.octets) = (0, 0, 0, 0);
    for row in messages {
        head.count_in(row.flags, row.size);
        head.mod_seq = head.mod_seq.max(row.mod_seq);
    }
}
