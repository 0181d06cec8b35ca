//! Deleted mailboxes whose messages are kept: the account has a row of each, beside its list.

use std::collections::BTreeSet;

use vere_ports::directory::AccountName;
use vere_ports::mail_meta::MetaEngine;
use vere_ports::storage::Storage;
use vere_units::Timestamp;

use super::Account;
use crate::batch::Change;
use crate::error::StoreError;
use crate::model::{MailboxId, MailboxName};
use crate::rows::{AsideRow, MailboxRow, keys};
use crate::store::Store;

/// The most deleted mailboxes that an account keeps.
const ASIDES_MAX: usize = 1_000;

impl Account {
    /// A deleted mailbox whose messages are kept.
    pub(crate) fn aside(&self, id: MailboxId) -> Option<&AsideRow> {
        self.asides.get(&id)
    }

    /// All of them, the one deleted first comes first.
    pub(crate) fn asides_by_age(&self) -> Vec<(MailboxId, &AsideRow)> {
        let mut asides: Vec<_> = self.asides.iter().map(|(id, row)| (*id, row)).collect();
        asides.sort_unstable_by_key(|(id, row)| (row.at, *id));
        asides
    }

    /// Takes deleted mailboxes, which are emptied from now on.
    pub(super) fn put_in_purges(&mut self, change: &mut Change, ids: &BTreeSet<MailboxId>) {
        for id in ids {
            if self.asides.remove(id).is_some() {
                change.remove(keys::aside(*id));
            }
            change.put(keys::purge(*id), Vec::new());
            self.purges.insert(*id);
        }
    }

    /// The oldest kept mailboxes, as many as are too many.
    pub(super) fn surplus_asides(&self) -> BTreeSet<MailboxId> {
        let surplus = self.asides.len().saturating_sub(ASIDES_MAX);
        match surplus {
            0 => BTreeSet::new(),
            _ => {
                let oldest = self.asides_by_age().into_iter().take(surplus);
                oldest.map(|(id, _)| id).collect()
            }
        }
    }
}

impl<S: Storage, M: MetaEngine> Store<S, M> {
    /// Whether the messages of a mailbox that is being deleted are kept: if it has any and kept messages are wanted.
    pub(super) fn keeps_deleted(&self, id: MailboxId) -> bool {
        let head = self.mailbox_head(id);
        let any = head
            .is_ok_and(|head| head.messages > 0 || head.kept.is_some_and(|kept| kept.messages > 0));
        self.config.keep_expunged && any
    }

    /// Sets a mailbox aside that was taken from the account's list.
    pub(super) fn put_aside(
        &mut self,
        name: &AccountName,
        (mut account, mut change): (Account, Change),
        (mailbox, row): (&MailboxName, MailboxRow),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let head = self.mailbox_head(row.id)?;
        let aside = AsideRow {
            deleted: now,
            at: self.log.end(),
            special_use: row.special_use,
            name: mailbox.clone(),
        };
        change.put(keys::aside(row.id), aside.encode());
        account.asides.insert(row.id, aside);
        let surplus = account.surplus_asides();
        let octets = self.octets_of(&surplus);
        account.put_in_purges(&mut change, &surplus);
        self.commit_account(name, account, change)?;
        self.forget(row.id);
        self.kept.set_aside(row.id);
        self.emptying.tell(row.id);
        self.kept.more(name, head.messages.into(), head.octets);
        self.end_asides(name, &surplus, octets);
        Ok(())
    }

    /// Lets deleted mailboxes go; [`Store::empty_some`] removes their rows.
    pub(crate) fn purge_asides(
        &mut self,
        name: &AccountName,
        ids: &BTreeSet<MailboxId>,
    ) -> Result<(), StoreError> {
        let octets = self.octets_of(ids);
        let (mut account, mut change) = self.change_account(name)?;
        account.put_in_purges(&mut change, ids);
        self.commit_account(name, account, change)?;
        self.end_asides(name, ids, octets);
        Ok(())
    }

    /// Messages and octets that deleted mailboxes keep.
    pub(super) fn octets_of(&self, ids: &BTreeSet<MailboxId>) -> (u64, u64) {
        let heads = ids.iter().filter_map(|id| self.mailbox_head(*id).ok());
        heads.fold((0, 0), |(messages, octets), head| {
            let kept = head.kept.unwrap_or_default();
            (
                messages + u64::from(head.messages) + u64::from(kept.messages),
                octets + head.octets + kept.octets,
            )
        })
    }

    pub(super) fn end_asides(
        &mut self,
        name: &AccountName,
        ids: &BTreeSet<MailboxId>,
        (messages, octets): (u64, u64),
    ) {
        self.kept.fewer(messages, octets);
        self.empty_later(name, ids, octets);
        ids.iter().for_each(|id| self.kept.forget_aside(*id));
    }

    /// Remembers the kept mailboxes of an account that was read, and forgets those read into memory before.
    pub(super) fn take_asides(&mut self, account: &Account) {
        for id in account.asides.keys() {
            self.kept.set_aside(*id);
        }
    }
}
