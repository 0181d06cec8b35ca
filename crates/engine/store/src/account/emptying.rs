//! Emptying deleted mailboxes, a bounded piece at a time: a large one, or ten thousand, would hold up everybody
//! else.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::ops::Not as _;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;

use crate::batch::Change;
use crate::model::MailboxId;
use crate::reclaim::marking::{partitions, unreadable_rows};
use crate::rows::keys;
use crate::{Store, StoreError};

/// What a mailbox costs beside its rows, in rows.
const MAILBOX_ROWS: usize = 20;
/// Accounts looked at in one go for what a crash cut off.
const ACCOUNTS: usize = 500;

/// Mailboxes that were deleted and are not empty yet; their accounts have notes of them.
#[derive(Debug, Default)]
pub(crate) struct Emptying {
    queue: VecDeque<(AccountName, MailboxId)>,
    /// The same without an order.
    ids: HashSet<MailboxId>,
    /// The last row of the first one that was removed; none when nothing was.
    after: Vec<u8>,
    /// The last account that was looked at for what a crash cut off.
    looked_at: Option<Partition>,
    /// Whether all were.
    is_known: bool,
    /// Those that nobody was told of yet.
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

    /// Takes those that nobody was told of.
    pub(crate) fn take_begun(&mut self) -> Vec<MailboxId> {
        std::mem::take(&mut self.begun)
    }

    /// Lets an account's mailboxes wait behind those of others.
    fn put_off(&mut self, name: &AccountName) {
        let own = self.queue.iter().take_while(|(of, _)| of == name).count();
        self.queue.rotate_left(own);
        self.after.clear();
    }

    /// Whether a mailbox was deleted.
    pub(crate) fn has(&self, mailbox: MailboxId) -> bool {
        self.ids.contains(&mailbox)
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Whether deleted mailboxes are to be emptied, or looked for: after it is opened nobody knows yet whether some
    /// were left.
    #[must_use]
    pub fn is_emptying(&self) -> bool {
        !self.emptying.queue.is_empty() || !self.emptying.is_known
    }

    /// Looks for deletions that a crash cut off. Where the list of accounts cannot be read, they wait for the next
    /// start or for who uses the account.
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
            // Of one that cannot be read nothing is known; whoever uses it is told, and a check.
            if let Ok(rows) = self.pending.scan(&self.meta, &partition, keys::PURGES) {
                let mailboxes = rows.keys().filter_map(|key| keys::mailbox_of(key));
                self.take_purges(name, &mailboxes.collect());
            }
            self.emptying.looked_at = Some(partition);
        }
        Ok(())
    }

    /// Takes mailboxes whose deletion was cut off; they may have been read before that was known.
    pub(super) fn take_purges(&mut self, name: &AccountName, mailboxes: &BTreeSet<MailboxId>) {
        mailboxes.iter().for_each(|mailbox| self.forget(*mailbox));
        self.emptying.add(name, mailboxes);
    }

    /// Has mailboxes emptied of which the account's list has just let go.
    pub(super) fn empty_later(
        &mut self,
        name: &AccountName,
        mailboxes: &BTreeSet<MailboxId>,
        octets: u64,
    ) {
        self.count_removed(0, octets);
        self.take_purges(name, mailboxes);
    }

    /// Empties deleted mailboxes: [`StoreConfig::removed_at_once`](crate::StoreConfig::removed_at_once) rows. To be
    /// called while there are some ([`Store::is_emptying`]), each time when what the time before logged is synced.
    /// Cut off anywhere it goes on when the store is opened again.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: [`StoreError::Damaged`] where something cannot be read; of another account it may go well then.
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

    /// Empties mailboxes of an account, as far as one step goes.
    fn empty_of(&mut self, name: &AccountName) -> Result<(), StoreError> {
        // Its notes go with its last mailbox: where these cannot be read, nothing is begun.
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

    /// Removes rows of a mailbox, at most as many as are left to this step; says whether it is empty.
    fn empty_piece(&mut self, id: MailboxId, left: &mut usize) -> Result<bool, StoreError> {
        let partition = Partition::Mailbox(id.0);
        let max = *left;
        let mut rows = Vec::new();
        // Whose it is and its counters stay to the end: what has none counts as empty.
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
            // What is logged and not applied yet goes with it.
            true => change.clear = true,
            false => rows.into_iter().for_each(|key| change.remove(key)),
        }
        self.commit(change)?;
        self.emptying.after = last.unwrap_or_default();
        Ok(is_last)
    }

    /// Forgets that mailboxes are to be emptied.
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
