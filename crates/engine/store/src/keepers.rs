//! Accounts and mailboxes with expunged messages that are kept, as far as the store has them in memory.

use std::collections::{BTreeSet, HashSet};

use vere_ports::directory::AccountName;

use crate::model::MailboxId;

/// What the store knows of kept messages in memory.
#[derive(Debug, Default)]
pub(crate) struct Keepers {
    /// Deleted mailboxes whose messages are kept, of the accounts in memory: sessions still know their ids.
    aside: HashSet<MailboxId>,
    /// Accounts that got kept messages since [`Store::take_keepers`].
    changed: BTreeSet<AccountName>,
    /// The change of the sums over all accounts since the store was opened.
    messages: i64,
    octets: i64,
}

impl Keepers {
    /// Whether a mailbox is deleted and its messages are kept.
    pub(crate) fn is_aside(&self, id: MailboxId) -> bool {
        self.aside.contains(&id)
    }

    pub(crate) fn set_aside(&mut self, id: MailboxId) {
        self.aside.insert(id);
    }

    pub(crate) fn forget_aside(&mut self, id: MailboxId) {
        self.aside.remove(&id);
    }

    /// Counts messages that an account keeps from now on.
    pub(crate) fn more(&mut self, account: &AccountName, messages: u64, octets: u64) {
        if !self.changed.contains(account) {
            self.changed.insert(account.clone());
        }
        self.messages = self.messages.saturating_add_unsigned(messages);
        self.octets = self.octets.saturating_add_unsigned(octets);
    }

    /// Counts messages that are not kept any more.
    pub(crate) fn fewer(&mut self, messages: u64, octets: u64) {
        self.messages = self.messages.saturating_sub_unsigned(messages);
        self.octets = self.octets.saturating_sub_unsigned(octets);
    }

    /// Takes the accounts that got kept messages.
    pub(crate) fn take_changed(&mut self) -> Vec<AccountName> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// The change of the sums of messages and octets.
    pub(crate) fn change(&self) -> (i64, i64) {
        (self.messages, self.octets)
    }
}
