//! Accounts as a whole: storage and removal.

use std::collections::BTreeSet;
use std::mem;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use crate::add::QuotaUsage;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::rows::keys;
use crate::store::Store;

/// The storage used by an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The account.
    pub account: AccountName,
    /// Its mailboxes.
    pub mailboxes: u64,
    /// Messages and octets in all mailboxes.
    pub usage: QuotaUsage,
}

/// Accounts changed per sync.
const ACCOUNTS: usize = 100;

/// Some accounts, and the account after which the next page begins; `None` after the last page.
pub type Holdings = (Vec<Holding>, Option<AccountName>);

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Returns the storage of the accounts after `after`, of at most `limit` accounts. Accounts without a mailbox are
    /// left out, and an account created just now may be missing. Accounts read for this purpose are not kept in
    /// memory.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn holdings(
        &self,
        after: Option<AccountName>,
        limit: usize,
    ) -> Result<Committed<Holdings>, StoreError> {
        let after = after.map(Partition::Account);
        let (mut holdings, mut last) = (Vec::new(), None);
        // Accounts sort before mailboxes.
        for partition in self.meta.partitions(after.as_ref(), limit)? {
            let Partition::Account(name) = partition else {
                last = None;
                break;
            };
            let holding = self.look_at(&name)?;
            if holding.mailboxes > 0 {
                holdings.push(holding);
            }
            last = Some(name);
        }
        Ok(Committed::new((holdings, last), self.log.end()))
    }

    /// Returns the storage used by one account.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn holding(&self, name: &AccountName) -> Result<Committed<Holding>, StoreError> {
        let holding = self.look_at(name)?;
        Ok(Committed::new(holding, self.log.end()))
    }

    /// The storage used by an account.
    pub(super) fn look_at(&self, name: &AccountName) -> Result<Holding, StoreError> {
        let account = self.known_account(name)?;
        let mut usage = QuotaUsage::default();
        for row in account.mailboxes.values() {
            let head = match self.mailbox_head(row.id) {
                // Found and said by a check.
                Err(StoreError::NoMailbox) => continue,
                head => head?,
            };
            usage.octets += head.octets;
            usage.messages += u64::from(head.messages);
        }
        Ok(Holding {
            account: name.clone(),
            mailboxes: account.mailboxes.len() as u64,
            usage,
        })
    }

    /// Removes all mailboxes of an account, `INBOX` included, with their messages, the kept ones too, and the
    /// subscriptions. Returns the storage that the account used. The greatest UIDVALIDITY is kept: clients of a later account of this name see
    /// other mailboxes. After a crash the account has all mailboxes or none. [`Store::empty_some`] removes the rows
    /// of the mailboxes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn remove_account(&mut self, name: &AccountName) -> Result<Committed<Holding>, StoreError> {
        let holding = self.look_at(name)?;
        let (mut account, mut change) = self.change_account(name)?;
        let mut gone: BTreeSet<_> = account.asides.keys().copied().collect();
        let (mut messages, mut octets) = self.octets_of(&gone);
        for (mailbox, row) in mem::take(&mut account.mailboxes) {
            change.remove(keys::mailbox(&mailbox));
            if let Ok(head) = self.mailbox_head(row.id) {
                let kept = head.kept.unwrap_or_default();
                messages += u64::from(kept.messages);
                octets += kept.octets;
            }
            gone.insert(row.id);
        }
        account.put_in_purges(&mut change, &gone);
        for mailbox in mem::take(&mut account.subscriptions) {
            change.remove(keys::subscription(&mailbox));
        }
        let purges = account.purges.clone();
        if account.version > 0 {
            self.commit_account(name, account, change)?;
        }
        self.empty_later(name, &purges, holding.usage.octets);
        self.end_asides(name, &gone, (messages, octets));
        Ok(Committed::new(holding, self.log.end()))
    }

    /// Gives every mailbox a UIDVALIDITY that the account never had, which invalidates the caches of clients (RFC
    /// 9051 section 2.3.1.1). Needed if the log may have lost a synced end, because the UIDs and mod-sequences of
    /// that end are assigned again. On return all changes are safe.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn renew_uid_validities(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let mut after = None;
        loop {
            let partitions = self.meta.partitions(after.as_ref(), ACCOUNTS)?;
            // Accounts sort before mailboxes.
            for partition in &partitions {
                let Partition::Account(name) = partition else {
                    return self.sync_all();
                };
                self.renew_uid_validities_of(name, now)?;
            }
            self.sync_all()?;
            match partitions.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    fn renew_uid_validities_of(
        &mut self,
        name: &AccountName,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (mut account, mut change) = self.change_account(name)?;
        let ids: Vec<_> = account.mailboxes.values().map(|row| row.id).collect();
        let mut given = Vec::with_capacity(ids.len());
        for id in ids {
            given.push((id, account.head.next_uid_validity(now)?));
        }
        // The greatest UIDVALIDITY is stored first: a failure later on must not let the account assign the number
        // again.
        change.put(keys::ACCOUNT_HEAD, account.head.encode());
        self.commit_account(name, account, change)?;
        for (id, uid_validity) in given {
            let mut edit = match self.edit(id) {
                // Found and said by a check.
                Err(StoreError::NoMailbox) => continue,
                edit => edit?,
            };
            edit.head.uid_validity = uid_validity;
            self.commit_edit(edit)?;
        }
        Ok(())
    }
}
