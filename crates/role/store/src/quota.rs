//! Quotas of accounts (RFC 9208).

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use vere_ports::directory::AccountName;
use vere_settings::{AccountQuota, OverQuota, Settings};
use vere_store::{QuotaLimit, QuotaUsage, StoreError};

use super::mail_store::MailStore;

/// Accounts and their usage.
type Held = Vec<(AccountName, QuotaUsage)>;

/// The limits of all accounts.
#[derive(Debug)]
pub(super) struct Quotas {
    default: QuotaLimit,
    accounts: HashMap<AccountName, QuotaLimit>,
    over: OverQuota,
    warn_at: u64,
}

/// A section `[[quota.account]]` has no valid account name.
#[derive(Debug)]
pub(super) struct QuotaError {
    name: String,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        write!(f, "quota.account: {name:?} is no name of an account")
    }
}

impl std::error::Error for QuotaError {}

impl Quotas {
    /// # Errors
    /// When an account's name is invalid.
    pub(super) fn new(settings: &Settings) -> Result<Self, QuotaError> {
        let quota = &settings.quota;
        let mut accounts = HashMap::new();
        for (name, own) in &quota.accounts {
            let account =
                AccountName::parse(name).map_err(|_| QuotaError { name: name.clone() })?;
            accounts.insert(account, limit(*own));
        }
        Ok(Self {
            default: limit(quota.default),
            accounts,
            over: quota.over,
            warn_at: quota.warn_at.into(),
        })
    }

    /// No account has a quota.
    #[cfg(test)]
    pub(super) fn unlimited() -> Self {
        Self {
            default: QuotaLimit::default(),
            accounts: HashMap::new(),
            over: OverQuota::Defer,
            warn_at: 90,
        }
    }

    /// Returns the quota of an account.
    pub(super) fn of(&self, account: &AccountName) -> QuotaLimit {
        self.accounts.get(account).copied().unwrap_or(self.default)
    }

    /// Whether mail over quota is deferred or rejected.
    pub(super) const fn over(&self) -> OverQuota {
        self.over
    }

    /// Returns the usage of accounts that have a quota. An account with unreadable usage is left out: that trouble
    /// must not affect other recipients of the message.
    pub(super) fn held<'a>(
        &self,
        store: &mut MailStore,
        accounts: impl Iterator<Item = &'a AccountName>,
    ) -> Held {
        let limited = accounts.filter(|account| self.of(account) != QuotaLimit::default());
        let limited: BTreeSet<&AccountName> = limited.collect();
        let usage = |account: &AccountName| match store.quota(account) {
            Ok(usage) => Some((account.clone(), usage)),
            Err(error) => {
                warn_unknown(account, &error);
                None
            }
        };
        limited.into_iter().filter_map(usage).collect()
    }

    /// Warns of accounts that came near their quota since `before`. The message is stored by now, and an error reply
    /// would bring a second copy, so this step cannot fail.
    pub(super) fn warn(&self, store: &mut MailStore, before: Held) {
        for (account, before) in before {
            let limit = self.of(&account);
            let now = match store.quota(&account) {
                Ok(now) => now,
                Err(error) => {
                    warn_unknown(&account, &error);
                    continue;
                }
            };
            if self.reaches(limit.octets, before.octets, now.octets)
                || self.reaches(limit.messages, before.messages, now.messages)
            {
                tracing::warn!(
                    %account,
                    octets = now.octets,
                    octets_max = limit.octets,
                    messages = now.messages,
                    messages_max = limit.messages,
                    "account is near its quota"
                );
            }
        }
    }

    /// Whether usage crossed the warning threshold between the two figures.
    fn reaches(&self, limit: Option<u64>, before: u64, now: u64) -> bool {
        limit.is_some_and(|limit| {
            let is_near =
                |used: u64| u128::from(used) * 100 >= u128::from(limit) * u128::from(self.warn_at);
            is_near(now) && !is_near(before)
        })
    }
}

fn warn_unknown(account: &AccountName, error: &StoreError) {
    tracing::warn!(%error, %account, "cannot tell whether an account is nearly full");
}

fn limit(quota: AccountQuota) -> QuotaLimit {
    QuotaLimit {
        octets: quota.size.map(vere_units::ByteSize::as_u64),
        messages: quota.messages.map(u64::from),
    }
}

/// The current quotas; a reload changes them for existing sessions as well.
#[derive(Debug, Clone)]
pub(super) struct SharedQuotas(Rc<RefCell<Arc<Quotas>>>);

impl SharedQuotas {
    pub(super) fn new(quotas: Quotas) -> Self {
        Self(Rc::new(RefCell::new(Arc::new(quotas))))
    }

    pub(super) fn set(&self, quotas: Quotas) {
        *self.0.borrow_mut() = Arc::new(quotas);
    }

    pub(super) fn now(&self) -> Arc<Quotas> {
        Arc::clone(&self.0.borrow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_once_on_the_way_up() {
        let quotas = Quotas::unlimited();
        let warned: Vec<u64> = (1..=10)
            .filter(|used| quotas.reaches(Some(10), used - 1, *used))
            .collect();
        assert_eq!(warned, [9]);
        assert!(quotas.reaches(Some(100), 75, 95));
        assert!(!quotas.reaches(Some(100), 93, 95));
        assert!(!quotas.reaches(None, 0, 95));
    }
}
