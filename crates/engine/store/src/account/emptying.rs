//! Emptying deleted mailboxes, a bounded piece at a time: a large one, or ten thousand, would hold up everybody
//! else.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Not as _;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use crate::batch::Change;
use crate::error::StoreError;
use crate::model::MailboxId;
use crate::reclaim::marking::{partitions, unreadable_rows};
use crate::rows::keys;
use crate::store::Store;

/// Cost of a mailbox beside its rows, counted in rows.
const MAILBOX_ROWS: usize = 20;
/// Accounts searched per step for interrupted deletions.
const ACCOUNTS: usize = 500;

/// Deleted mailboxes that still have rows; each account keeps a note of its deleted mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Emptying {
    queue: VecDeque<(AccountName, MailboxId)>,
    /// The mailboxes of the queue, as a set.
    ids: HashSet<MailboxId>,
    /// The last row of the first one that was removed; absent when nothing was.
    after: Vec<u8>,
    /// The last account that was looked at for what a crash cut off.
    looked_at: Option<Partition>,
    /// Whether all were.
    is_known: bool,
    /// Deleted mailboxes not yet published.
    begun: Vec<MailboxId>,
}

impl Emptying {
    /// Takes mailboxes of an account; what it has already it does not take again.
    pub(super) fn add(&mut self, name: &AccountName, mailboxes: &BTreeSet<MailboxId>) {
        for mailbox in mailboxes {
            if self.ids.insert(*mailbox) {
                self.queue.push_back((name.clone(), *mailbox));
                self.begun.push(*mailbox);
            }
        }
    }

    /// Takes a deleted mailbox that stays, to be published only.
    pub(super) fn tell(&mut self, mailbox: MailboxId) {
        self.begun.push(mailbox);
    }

    /// Takes the deleted mailboxes not yet published.
    pub(crate) fn take_begun(&mut self) -> Vec<MailboxId> {
        std::mem::take(&mut self.begun)
    }

    /// Lets an account's mailboxes wait behind those of others.
    fn put_off(&mut self, name: &AccountName) {
        let own = self.queue.iter().take_while(|(of, _)| of == name).count();
        self.queue.rotate_left(own);
        self.after.clear();
    }

    /// Whether a mailbox is deleted and not yet empty.
    pub(crate) fn has(&self, mailbox: MailboxId) -> bool {
        self.ids.contains(&mailbox)
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Whether deleted mailboxes have to be emptied or searched for. After opening, the store does not yet know about
    /// interrupted deletions.
    #[must_use]
    pub fn is_emptying(&self) -> bool {
        !self.emptying.queue.is_empty() || !self.emptying.is_known
    }

    /// Searches for deletions interrupted by a crash. If the list of accounts cannot be read, the deletions wait for
    /// the next start or the next use of the account.
    fn look_for_purges(&mut self) -> Result<(), StoreError> {
        let after = self.emptying.looked_at.as_ref();
        let partitions = partitions(&self.meta, after, ACCOUNTS);
        // Accounts sort before mailboxes.
        let is_account = |partition: &Partition| matches!(partition, Partition::Account(_));
        self.emptying.is_known = partitions
            .as_ref()
            .is_ok_and(|found| found.len() == ACCOUNTS && found.iter().all(is_account))
            .not();
        for partition in partitions? {
            let Partition::Account(name) = &partition else {
                break;
            };
            // An unreadable account is skipped here; its next use, and a check, report the error.
            if let Ok(rows) = self.pending.scan(&self.meta, &partition, keys::PURGES) {
                let mailboxes = rows.keys().filter_map(|key| keys::mailbox_of(key));
                self.take_purges(name, &mailboxes.collect());
            }
            self.emptying.looked_at = Some(partition);
        }
        Ok(())
    }

    /// Queues mailboxes of interrupted deletions, and forgets mailboxes that were read into memory before.
    pub(super) fn take_purges(&mut self, name: &AccountName, mailboxes: &BTreeSet<MailboxId>) {
        mailboxes.iter().for_each(|mailbox| self.forget(*mailbox));
        self.emptying.add(name, mailboxes);
    }

    /// Queues mailboxes just removed from the account's list.
    pub(super) fn empty_later(
        &mut self,
        name: &AccountName,
        mailboxes: &BTreeSet<MailboxId>,
        octets: u64,
    ) {
        self.count_removed(0, octets);
        self.take_purges(name, mailboxes);
    }

    /// Empties deleted mailboxes: [`StoreConfig::removed_at_once`](crate::store::StoreConfig::removed_at_once) rows. Call
    /// this while [`Store::is_emptying`], each time after the log of the previous step is synced. After a crash,
    /// emptying continues when the store is opened again.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; [`StoreError::Damaged`] if rows cannot be read. The next call goes on with another account.
    pub fn empty_some(&mut self) -> Result<(), StoreError> {
        let looked = match self.emptying.is_known {
            true => Ok(()),
            false => self.look_for_purges(),
        };
        let Some((name, _)) = self.emptying.queue.front().cloned() else {
            return looked;
        };
        let emptied = self.empty_of(&name);
        if emptied.is_err() {
            self.emptying.put_off(&name);
        }
        looked.and(emptied)
    }

    /// Empties mailboxes of an account, within the row limit of one step.
    fn empty_of(&mut self, name: &AccountName) -> Result<(), StoreError> {
        // The account's notes of deleted mailboxes go last; if the notes cannot be read, emptying does not start.
        if let Err(StoreError::Failed(why)) = self.account(name) {
            return Err(unreadable_rows(&Partition::Account(name.clone()), &why));
        }
        let mut left = self.config.removed_at_once as usize;
        let mut empty = BTreeSet::new();
        let mut is_empty = Ok(true);
        while left > 0 && is_empty == Ok(true) {
            let next = self.emptying.queue.get(empty.len());
            let Some((_, id)) = next.filter(|(of, _)| of == name).cloned() else {
                break;
            };
            is_empty = self.empty_piece(id, &mut left);
            if is_empty == Ok(true) {
                empty.insert(id);
            }
        }
        self.end_purges(name, &empty)?;
        self.emptying.queue.drain(..empty.len());
        for id in &empty {
            self.emptying.ids.remove(id);
        }
        is_empty.map(drop)
    }

    /// Removes rows of a mailbox, at most `left`. Returns whether the mailbox is empty.
    fn empty_piece(&mut self, id: MailboxId, left: &mut usize) -> Result<bool, StoreError> {
        let partition = Partition::Mailbox(id.0);
        let max = *left;
        let mut rows = Vec::new();
        // Owner and counters stay until the end: a mailbox without these rows counts as empty.
        let after = match self.emptying.after.as_slice() {
            [] => keys::HEAD,
            after => after,
        };
        let scanned = self.meta.scan_after(&partition, &[], after, &mut |key, _| {
            rows.push(key.to_vec());
            rows.len() < max
        });
        scanned.map_err(|error| unreadable_rows(&partition, &error))?;
        *left = max.saturating_sub(rows.len() + MAILBOX_ROWS);
        let is_last = rows.len() < max;
        let last = rows.last().cloned().filter(|_| !is_last);
        let version = self.pending.version(&self.meta, &partition);
        let version = version.map_err(|error| unreadable_rows(&partition, &error))?;
        let mut change = Change::new(partition, version);
        match is_last {
            // Clearing also removes rows that are logged and not applied yet.
            true => change.clear = true,
            false => rows.into_iter().for_each(|key| change.remove(key)),
        }
        self.commit(change)?;
        self.emptying.after = last.unwrap_or_default();
        Ok(is_last)
    }

    /// Removes the account's notes of emptied mailboxes.
    fn end_purges(
        &mut self,
        name: &AccountName,
        empty: &BTreeSet<MailboxId>,
    ) -> Result<(), StoreError> {
        if empty.is_empty() {
            return Ok(());
        }
        let (mut account, mut change) = self.change_account(name)?;
        for mailbox in empty {
            account.purges.remove(mailbox);
            change.remove(keys::purge(*mailbox));
        }
        self.commit_account(name, account, change).map(drop)
    }
}
