//! Accounts: the list of mailboxes and the operations on the list.

mod asides;
mod emptying;
mod renaming;
mod whole;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::{MetaEngine, Partition};
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use crate::batch::Change;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::model::{MailboxId, MailboxName, SpecialUse};
use crate::rows::{AccountHead, AsideRow, MailboxHead, MailboxRow, keys};
use crate::store::Store;

pub(crate) use emptying::Emptying;
pub use whole::{Holding, Holdings};

/// An account in memory.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    version: u64,
    head: AccountHead,
    pub(crate) mailboxes: BTreeMap<MailboxName, MailboxRow>,
    subscriptions: BTreeSet<MailboxName>,
    /// Deleted mailboxes whose partition is not empty yet.
    purges: BTreeSet<MailboxId>,
    /// Deleted mailboxes whose messages are kept.
    asides: BTreeMap<MailboxId, AsideRow>,
}

/// A name in the list of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEntry {
    /// The name.
    pub name: MailboxName,
    /// The mailbox; `None` for a subscribed name without a mailbox (RFC 9051 section 6.3.7).
    pub mailbox: Option<MailboxId>,
    /// The special use.
    pub special_use: Option<SpecialUse>,
    /// Whether the account subscribes to the mailbox.
    pub subscribed: bool,
}

impl AccountHead {
    /// Gives a UIDVALIDITY: at least the time in seconds, and greater than any the account had.
    fn next_uid_validity(&mut self, now: Timestamp) -> Result<u32, StoreError> {
        let seconds = u32::try_from(now.as_millis() / 1_000).unwrap_or(u32::MAX);
        let above = self.uid_validity.checked_add(1);
        self.uid_validity = above.ok_or(StoreError::NumbersUsedUp)?.max(seconds);
        Ok(self.uid_validity)
    }
}

fn damaged(account: &AccountName) -> StoreError {
    StoreError::Damaged(format!("the list of mailboxes of {account}"))
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Returns the account, read into memory on first use.
    pub(crate) fn account(&mut self, name: &AccountName) -> Result<&Account, StoreError> {
        if !self.accounts.contains_key(name) {
            let account = self.read_account(name)?;
            self.take_purges(name, &account.purges);
            self.take_asides(&account);
            self.accounts.insert(name.clone(), account);
        }
        self.accounts.get(name).ok_or_else(|| damaged(name))
    }

    /// Returns the account. An account that is read for this is not kept in memory.
    pub(crate) fn known_account(&self, name: &AccountName) -> Result<Cow<'_, Account>, StoreError> {
        match self.accounts.get(name) {
            Some(account) => Ok(Cow::Borrowed(account)),
            None => Ok(Cow::Owned(self.read_account(name)?)),
        }
    }

    fn read_account(&self, name: &AccountName) -> Result<Account, StoreError> {
        let partition = Partition::Account(name.clone());
        let scan = |prefix: &[u8]| self.pending.scan(&self.meta, &partition, prefix);
        let bad = || damaged(name);
        let head = self
            .pending
            .row(&self.meta, &partition, keys::ACCOUNT_HEAD)?;
        let head = head
            .map(|row| AccountHead::decode(&row).ok_or_else(bad))
            .transpose()?;
        let mut mailboxes = BTreeMap::new();
        for (key, row) in scan(keys::MAILBOXES)? {
            let name = keys::name_of(&key).ok_or_else(bad)?;
            mailboxes.insert(name, MailboxRow::decode(&row).ok_or_else(bad)?);
        }
        let subscriptions = scan(keys::SUBSCRIPTIONS)?;
        let subscriptions = subscriptions
            .keys()
            .map(|key| keys::name_of(key).ok_or_else(bad));
        let purges = scan(keys::PURGES)?;
        let purges = purges
            .keys()
            .map(|key| keys::mailbox_of(key).ok_or_else(bad));
        let mut asides = BTreeMap::new();
        for (key, row) in scan(keys::ASIDE)? {
            let id = keys::mailbox_of(&key).ok_or_else(bad)?;
            asides.insert(id, AsideRow::decode(&row).ok_or_else(bad)?);
        }
        Ok(Account {
            version: self.pending.version(&self.meta, &partition)?,
            head: head.unwrap_or_default(),
            mailboxes,
            subscriptions: subscriptions.collect::<Result<_, _>>()?,
            purges: purges.collect::<Result<_, _>>()?,
            asides,
        })
    }

    /// Begins a change of an account.
    fn change_account(&mut self, name: &AccountName) -> Result<(Account, Change), StoreError> {
        let account = self.account(name)?.clone();
        let change = Change::new(Partition::Account(name.clone()), account.version);
        Ok((account, change))
    }

    /// Makes a change of an account, with `account` as the new state.
    fn commit_account(
        &mut self,
        name: &AccountName,
        mut account: Account,
        change: Change,
    ) -> Result<u64, StoreError> {
        account.version = self.commit(change)?;
        let version = account.version;
        self.accounts.insert(name.clone(), account);
        Ok(version)
    }

    /// Creates the `INBOX` of an account, if missing. To be called before every other operation on the account. A
    /// new account gets `INBOX` and the mailboxes of [`StoreConfig::new_account`](crate::store::StoreConfig), all or
    /// none.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn open_account(
        &mut self,
        name: &AccountName,
        now: Timestamp,
    ) -> Result<Committed<MailboxId>, StoreError> {
        match self.mailbox_named(name, &MailboxName::inbox()) {
            Err(StoreError::NoMailbox) => self.make_account(name, now),
            found => found,
        }
    }

    fn make_account(
        &mut self,
        name: &AccountName,
        now: Timestamp,
    ) -> Result<Committed<MailboxId>, StoreError> {
        let (mut account, mut change) = self.change_account(name)?;
        for (mailbox, special_use) in self.config.new_account.clone() {
            if !account.mailboxes.contains_key(&mailbox) {
                let new = (&mailbox, special_use);
                self.add_mailbox(name, (&mut account, &mut change), new, now)?;
                change.put(keys::subscription(&mailbox), Vec::new());
                account.subscriptions.insert(mailbox);
            }
        }
        let inbox = (&MailboxName::inbox(), None);
        let id = self.add_mailbox(name, (&mut account, &mut change), inbox, now)?;
        let version = self.commit_account(name, account, change)?;
        Ok(Committed::new(id, version + 1))
    }

    /// Finds a mailbox by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoMailbox`].
    pub fn mailbox_named(
        &mut self,
        account: &AccountName,
        name: &MailboxName,
    ) -> Result<Committed<MailboxId>, StoreError> {
        let account = self.account(account)?;
        let row = account.mailboxes.get(name).ok_or(StoreError::NoMailbox)?;
        Ok(Committed::new(row.id, account.safe_at()))
    }

    /// Lists the mailboxes and subscriptions of an account, sorted by name.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn list(&mut self, account: &AccountName) -> Result<Committed<Vec<ListEntry>>, StoreError> {
        let account = self.account(account)?;
        let names: BTreeSet<_> = account
            .mailboxes
            .keys()
            .chain(&account.subscriptions)
            .collect();
        let entry = |name: &MailboxName| {
            let row = account.mailboxes.get(name);
            ListEntry {
                name: name.clone(),
                mailbox: row.map(|row| row.id),
                special_use: row.and_then(|row| row.special_use),
                subscribed: account.subscriptions.contains(name),
            }
        };
        let entries = names.into_iter().map(entry).collect();
        Ok(Committed::new(entries, account.safe_at()))
    }

    /// Creates a mailbox. The UIDVALIDITY is greater than all earlier values of the account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`], [`StoreError::MailboxesFull`]; [`StoreError::NoMailbox`] when the account was
    /// not opened, or removed since.
    pub fn create_mailbox(
        &mut self,
        name: &AccountName,
        mailbox: &MailboxName,
        special_use: Option<SpecialUse>,
        now: Timestamp,
    ) -> Result<Committed<MailboxId>, StoreError> {
        self.account(name)?.is_open()?;
        self.make_mailbox(name, mailbox, special_use, now)
    }

    fn make_mailbox(
        &mut self,
        name: &AccountName,
        mailbox: &MailboxName,
        special_use: Option<SpecialUse>,
        now: Timestamp,
    ) -> Result<Committed<MailboxId>, StoreError> {
        let (mut account, mut change) = self.change_account(name)?;
        if account.mailboxes.contains_key(mailbox) {
            return Err(StoreError::Exists);
        }
        if account.mailboxes.len() >= self.config.mailboxes_max as usize {
            return Err(StoreError::MailboxesFull);
        }
        let new = (mailbox, special_use);
        let id = self.add_mailbox(name, (&mut account, &mut change), new, now)?;
        let version = self.commit_account(name, account, change)?;
        Ok(Committed::new(id, version + 1))
    }

    /// Adds a mailbox to a change of an account.
    fn add_mailbox(
        &mut self,
        name: &AccountName,
        (account, change): (&mut Account, &mut Change),
        (mailbox, special_use): (&MailboxName, Option<SpecialUse>),
        now: Timestamp,
    ) -> Result<MailboxId, StoreError> {
        let uid_validity = account.head.next_uid_validity(now)?;
        // The mailbox comes first: before the account's list names the mailbox, the mailbox is unreachable, and
        // the next check removes it; the list never names a missing mailbox.
        let id = self.create_partition(name, uid_validity)?;
        let row = MailboxRow { id, special_use };
        change.put(keys::ACCOUNT_HEAD, account.head.encode());
        change.put(keys::mailbox(mailbox), row.encode());
        account.mailboxes.insert(mailbox.clone(), row);
        Ok(id)
    }

    fn create_partition(
        &mut self,
        owner: &AccountName,
        uid_validity: u32,
    ) -> Result<MailboxId, StoreError> {
        let id = MailboxId(self.log.end());
        let mut change = Change::new(Partition::Mailbox(id.0), 0);
        change.put(keys::OWNER, owner.to_string().into_bytes());
        change.put(keys::HEAD, MailboxHead::new(uid_validity).encode());
        self.commit(change)?;
        Ok(id)
    }

    /// Deletes a mailbox with its messages; mailboxes below the deleted mailbox stay. No session finds the mailbox
    /// any more; [`Store::empty_some`] removes its rows, unless its messages are kept as those of
    /// [`Store::expunge`] are.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inbox`], [`StoreError::NoMailbox`].
    pub fn delete_mailbox(
        &mut self,
        name: &AccountName,
        mailbox: &MailboxName,
        now: Timestamp,
    ) -> Result<Committed<()>, StoreError> {
        if mailbox.is_inbox() {
            return Err(StoreError::Inbox);
        }
        let (mut account, mut change) = self.change_account(name)?;
        let row = account
            .mailboxes
            .remove(mailbox)
            .ok_or(StoreError::NoMailbox)?;
        change.remove(keys::mailbox(mailbox));
        if self.keeps_deleted(row.id) {
            self.put_aside(name, (account, change), (mailbox, row), now)?;
            return Ok(Committed::new((), self.log.end()));
        }
        change.put(keys::purge(row.id), Vec::new());
        account.purges.insert(row.id);
        let octets = self.mailbox_head(row.id).map_or(0, |head| head.octets);
        self.commit_account(name, account, change)?;
        self.empty_later(name, &BTreeSet::from([row.id]), octets);
        Ok(Committed::new((), self.log.end()))
    }

    /// Renames a mailbox with all mailboxes below (RFC 9051 section 6.3.6, except for `INBOX`, whose messages the
    /// caller moves).
    ///
    /// # Errors
    ///
    /// [`StoreError::Inbox`], [`StoreError::NoMailbox`], [`StoreError::Exists`], [`StoreError::Name`].
    pub fn rename_mailbox(
        &mut self,
        name: &AccountName,
        from: &MailboxName,
        to: &MailboxName,
    ) -> Result<Committed<()>, StoreError> {
        if from.is_inbox() || to.is_inbox() {
            return Err(StoreError::Inbox);
        }
        let (mut account, mut change) = self.change_account(name)?;
        let below = |each: &MailboxName| each == from || each.is_below(from);
        let moving: Vec<_> = account
            .mailboxes
            .keys()
            .filter(|each| below(each))
            .cloned()
            .collect();
        if moving.is_empty() {
            return Err(StoreError::NoMailbox);
        }
        if to.is_below(from) {
            return Err(StoreError::Name);
        }
        for old in moving {
            let new = old.moved(from, to)?;
            if account.mailboxes.contains_key(&new) {
                return Err(StoreError::Exists);
            }
            if let Some(row) = account.mailboxes.remove(&old) {
                change.remove(keys::mailbox(&old));
                change.put(keys::mailbox(&new), row.encode());
                account.mailboxes.insert(new, row);
            }
        }
        let version = self.commit_account(name, account, change)?;
        Ok(Committed::new((), version + 1))
    }

    /// Subscribes to a name or ends that; the name need not be there.
    ///
    /// # Errors
    ///
    /// [`StoreError::MailboxesFull`]; [`StoreError::NoMailbox`] when the account was not opened, or removed since.
    pub fn subscribe(
        &mut self,
        name: &AccountName,
        mailbox: &MailboxName,
        subscribed: bool,
    ) -> Result<Committed<()>, StoreError> {
        let (mut account, mut change) = self.change_account(name)?;
        account.is_open()?;
        let changed = if subscribed {
            change.put(keys::subscription(mailbox), Vec::new());
            account.subscriptions.insert(mailbox.clone())
        } else {
            change.remove(keys::subscription(mailbox));
            account.subscriptions.remove(mailbox)
        };
        if !changed {
            return Ok(Committed::new((), account.safe_at()));
        }
        if account.subscriptions.len() > self.config.mailboxes_max as usize {
            return Err(StoreError::MailboxesFull);
        }
        let version = self.commit_account(name, account, change)?;
        Ok(Committed::new((), version + 1))
    }
}

impl Account {
    /// Deleted mailboxes that are not empty yet.
    pub(crate) fn purged(&self) -> impl Iterator<Item = MailboxId> {
        self.purges.iter().copied()
    }

    /// Checks that the account has its `INBOX`. A removed account gets no mailboxes from sessions still open.
    fn is_open(&self) -> Result<(), StoreError> {
        match self.mailboxes.contains_key(&MailboxName::inbox()) {
            true => Ok(()),
            false => Err(StoreError::NoMailbox),
        }
    }

    /// The position before which all known changes of the account lie.
    fn safe_at(&self) -> u64 {
        if self.version == 0 {
            0
        } else {
            self.version + 1
        }
    }
}
