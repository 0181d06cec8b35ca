//! All mailboxes of an account under another name.

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::MetaEngine;
use vere_ports::storage::Storage;

use super::Account;
use super::whole::Holding;
use crate::batch::Change;
use crate::committed::Committed;
use crate::error::StoreError;
use crate::model::{MailboxId, MailboxName};
use crate::rows::{MailboxRow, keys};
use crate::store::Store;

/// Numbers tried for a mailbox whose name is taken.
const NUMBERS: std::ops::Range<u32> = 2..1_000;

impl Account {
    fn has(&self, id: MailboxId) -> bool {
        self.mailboxes.values().any(|row| row.id == id) || self.asides.contains_key(&id)
    }

    /// All mailboxes, the deleted ones whose messages are kept too.
    fn ids(&self) -> Vec<MailboxId> {
        let listed = self.mailboxes.values().map(|row| row.id);
        listed.chain(self.asides.keys().copied()).collect()
    }

    /// Lists a mailbox. A mailbox that has the name already gets a number behind its name, since clients know the
    /// moved mailbox by the name.
    fn list(
        &mut self,
        change: &mut Change,
        name: &MailboxName,
        row: MailboxRow,
    ) -> Result<(), StoreError> {
        if let Some(other) = self.mailboxes.insert(name.clone(), row) {
            let free = NUMBERS.into_iter().find_map(|number| {
                let numbered = MailboxName::new(&format!("{}-{number}", name.as_str())).ok()?;
                (!self.mailboxes.contains_key(&numbered)).then_some(numbered)
            });
            let free = free.ok_or(StoreError::Exists)?;
            let other = MailboxRow {
                special_use: None,
                ..other
            };
            change.put(keys::mailbox(&free), other.encode());
            self.mailboxes.insert(free, other);
        }
        change.put(keys::mailbox(name), row.encode());
        Ok(())
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Gives all mailboxes of an account to another name, with everything in them, the kept messages and the
    /// subscriptions too: UIDs and UIDVALIDITY stay. Mailboxes of the other name stay as well; an empty one makes room
    /// for a moved mailbox of its name, and one with messages gets a number behind its name. Returns the storage that
    /// was moved. After a crash the mailboxes may be listed under both names, until the same call is made again.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`] if no number is free.
    pub fn rename_account(
        &mut self,
        from: &AccountName,
        to: &AccountName,
    ) -> Result<Committed<Holding>, StoreError> {
        let holding = self.look_at(from)?;
        let ids = self.account(from)?.ids();
        if from == to || ids.is_empty() {
            return Ok(Committed::new(holding, self.log.end()));
        }
        self.make_place(from, to)?;
        self.list_all(from, to)?;
        for id in ids {
            self.give(id, to)?;
        }
        self.list_none(from)?;
        Ok(Committed::new(holding, self.log.end()))
    }

    /// Deletes the empty mailboxes that have names of moving ones.
    fn make_place(&mut self, from: &AccountName, to: &AccountName) -> Result<(), StoreError> {
        let moving = self.account(from)?.clone();
        let (mut account, mut change) = self.change_account(to)?;
        let mut gone = std::collections::BTreeSet::new();
        for (name, row) in account.mailboxes.clone() {
            let is_taken = moving.mailboxes.contains_key(&name) && !moving.has(row.id);
            let is_empty = self.mailbox_head(row.id).is_ok_and(|head| {
                head.messages == 0 && head.kept.is_none_or(|kept| kept.messages == 0)
            });
            if is_taken && is_empty {
                account.mailboxes.remove(&name);
                change.remove(keys::mailbox(&name));
                change.put(keys::purge(row.id), Vec::new());
                account.purges.insert(row.id);
                gone.insert(row.id);
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.commit_account(to, account, change)?;
        self.empty_later(to, &gone, 0);
        Ok(())
    }

    /// Lists everything of one account under another name too.
    fn list_all(&mut self, from: &AccountName, to: &AccountName) -> Result<(), StoreError> {
        let moving = self.account(from)?.clone();
        let (mut account, mut change) = self.change_account(to)?;
        let head = &mut account.head;
        head.uid_validity = head.uid_validity.max(moving.head.uid_validity);
        change.put(keys::ACCOUNT_HEAD, head.encode());
        for (name, row) in &moving.mailboxes {
            // A call that was cut off has listed it.
            if !account.has(row.id) {
                account.list(&mut change, name, *row)?;
            }
        }
        for (id, row) in &moving.asides {
            change.put(keys::aside(*id), row.encode());
            account.asides.insert(*id, row.clone());
        }
        for name in &moving.subscriptions {
            change.put(keys::subscription(name), Vec::new());
            account.subscriptions.insert(name.clone());
        }
        self.commit_account(to, account, change).map(drop)
    }

    /// Makes an account the owner of a mailbox.
    fn give(&mut self, id: MailboxId, to: &AccountName) -> Result<(), StoreError> {
        let mut edit = match self.any_edit(id) {
            // Found and said by a check.
            Err(StoreError::NoMailbox) => return Ok(()),
            edit => edit?,
        };
        edit.change.put(keys::OWNER, to.to_string().into_bytes());
        self.commit_edit(edit)?;
        if let Some(mailbox) = self.mailboxes.get_mut(&id) {
            mailbox.owner = to.clone();
        }
        Ok(())
    }

    /// Empties the list of an account. Its greatest UIDVALIDITY is kept.
    fn list_none(&mut self, name: &AccountName) -> Result<(), StoreError> {
        let (mut account, mut change) = self.change_account(name)?;
        for mailbox in std::mem::take(&mut account.mailboxes).keys() {
            change.remove(keys::mailbox(mailbox));
        }
        for id in std::mem::take(&mut account.asides).keys() {
            change.remove(keys::aside(*id));
        }
        for mailbox in std::mem::take(&mut account.subscriptions) {
            change.remove(keys::subscription(&mailbox));
        }
        self.commit_account(name, account, change).map(drop)
    }
}
