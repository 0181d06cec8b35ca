//! A whole directory in memory: what the file store holds, and a store for tests and simulation.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{
    Account, AccountName, Alias, Change, ChangeError, DirectoryStore, Domain, DomainName, Lookup,
    Page, StoreError,
};

/// Domains, accounts and aliases by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    domains: BTreeMap<DomainName, Domain>,
    accounts: BTreeMap<String, Account>,
    aliases: BTreeMap<String, Alias>,
    /// Accounts and aliases of each domain, so that counting does not walk over all.
    counts: BTreeMap<DomainName, (usize, usize)>,
}

impl Records {
    /// Checks and makes a change.
    ///
    /// # Errors
    ///
    /// The errors of [`Change::check`].
    pub fn apply(&mut self, change: &Change) -> Result<(), ChangeError> {
        change.check(self)?;
        match change {
            Change::AddDomain(domain) => {
                self.domains.insert(domain.name.clone(), domain.clone());
                self.counts.insert(domain.name.clone(), (0, 0));
            }
            Change::SetCatchAll(name, target) => {
                if let Some(domain) = self.domains.get_mut(name) {
                    domain.catch_all.clone_from(target);
                }
            }
            Change::RemoveDomain(name) => {
                self.domains.remove(name);
                self.counts.remove(name);
            }
            Change::AddAccount(account) => {
                self.accounts
                    .insert(account.name.to_string(), account.clone());
                self.counts
                    .entry(account.name.domain().clone())
                    .or_default()
                    .0 += 1;
            }
            Change::SetCredentials(name, credentials) => {
                if let Some(account) = self.accounts.get_mut(&name.to_string()) {
                    account.credentials.clone_from(credentials);
                }
            }
            Change::RemoveAccount(name) => {
                self.accounts.remove(&name.to_string());
                self.counts.entry(name.domain().clone()).or_default().0 -= 1;
            }
            Change::SetAlias(alias) => {
                if self
                    .aliases
                    .insert(alias.name.to_string(), alias.clone())
                    .is_none()
                {
                    self.counts
                        .entry(alias.name.domain().clone())
                        .or_default()
                        .1 += 1;
                }
            }
            Change::RemoveAlias(name) => {
                self.aliases.remove(&name.to_string());
                self.counts.entry(name.domain().clone()).or_default().1 -= 1;
            }
        }
        Ok(())
    }

    /// Lists all domains, sorted.
    #[must_use]
    pub fn domains(&self) -> Vec<Domain> {
        self.domains.values().cloned().collect()
    }

    /// Lists accounts, sorted.
    #[must_use]
    pub fn accounts(&self, page: &Page) -> Vec<Account> {
        list(&self.accounts, page, |account| account.name.domain())
    }

    /// Lists aliases, sorted.
    #[must_use]
    pub fn aliases(&self, page: &Page) -> Vec<Alias> {
        list(&self.aliases, page, |alias| alias.name.domain())
    }
}

fn list<T: Clone>(
    all: &BTreeMap<String, T>,
    page: &Page,
    domain: impl Fn(&T) -> &DomainName,
) -> Vec<T> {
    let after = page.after.as_ref().map(ToString::to_string);
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let rows = all.range((start, Bound::Unbounded)).map(|(_, row)| row);
    let rows = rows.filter(|row| page.domain.as_ref().is_none_or(|only| only == domain(row)));
    rows.take(page.limit).cloned().collect()
}

impl Lookup for Records {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        Ok(self.domains.get(name).cloned())
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        Ok(self.accounts.get(&name.to_string()).cloned())
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        Ok(self.aliases.get(&name.to_string()).cloned())
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        Ok(self.counts.get(domain).copied().unwrap_or_default())
    }
}

/// A store in memory, for tests and simulation.
#[derive(Debug, Default)]
pub struct MemoryStore {
    records: Mutex<Records>,
    changes: AtomicU64,
}

impl MemoryStore {
    fn records(&self) -> MutexGuard<'_, Records> {
        // Changes are made after every check, so that a panic cannot leave half a change.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lookup for MemoryStore {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        self.records().domain(name)
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        self.records().account(name)
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        self.records().alias(name)
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        self.records().count(domain)
    }
}

impl DirectoryStore for MemoryStore {
    fn apply(&self, change: &Change) -> Result<(), ChangeError> {
        self.records().apply(change)?;
        self.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn revision(&self) -> Result<u64, StoreError> {
        Ok(self.changes.load(Ordering::Relaxed))
    }

    fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        Ok(self.records().domains())
    }

    fn accounts(&self, page: &Page) -> Result<Vec<Account>, StoreError> {
        Ok(self.records().accounts(page))
    }

    fn aliases(&self, page: &Page) -> Result<Vec<Alias>, StoreError> {
        Ok(self.records().aliases(page))
    }
}
