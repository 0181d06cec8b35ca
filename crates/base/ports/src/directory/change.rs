//! Changes of a directory, and their conditions.

use super::names::{AccountName, DomainName};
use super::{Account, Alias, Credentials, Domain, Lookup, StoreError, TARGETS_MAX};

/// Octets of an address: 64 of local part, `@`, 255 of domain.
const ADDRESS_OCTETS_MAX: usize = 320;

/// An atomic change of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Adds a domain.
    AddDomain(Domain),
    /// Replaces the catch-all target of a domain.
    SetCatchAll(DomainName, Option<String>),
    /// Removes a domain without accounts and aliases.
    RemoveDomain(DomainName),
    /// Adds an account.
    AddAccount(Account),
    /// Replaces the credentials of an account.
    SetCredentials(AccountName, Option<Credentials>),
    /// Removes an account; its mailboxes are not touched.
    RemoveAccount(AccountName),
    /// Adds an alias, or replaces the targets of an existing alias.
    SetAlias(Alias),
    /// Removes an alias.
    RemoveAlias(AccountName),
}

/// The reason why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The domain exists already.
    #[error("domain {0} exists already")]
    DomainExists(DomainName),
    /// The domain does not exist.
    #[error("there is no domain {0}")]
    NoSuchDomain(DomainName),
    /// The domain still has accounts and aliases; the numbers of both.
    #[error(
        "domain {0} still has {1} accounts and {2} aliases; remove all accounts and aliases first"
    )]
    DomainInUse(DomainName, usize, usize),
    /// The account exists already.
    #[error("account {0} exists already")]
    AccountExists(AccountName),
    /// The account does not exist.
    #[error("there is no account {0}")]
    NoSuchAccount(AccountName),
    /// The alias does not exist.
    #[error("there is no alias {0}")]
    NoSuchAlias(AccountName),
    /// An alias must have at least one target and at most [`TARGETS_MAX`].
    #[error("an alias has 1 to {TARGETS_MAX} targets, not {0}")]
    TargetCount(usize),
    /// The text is no address.
    #[error("{0:?} is not an address")]
    Target(String),
    /// The store cannot make changes.
    #[error("{0}")]
    Store(StoreError),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Change {
    /// Checks whether the change is allowed in the directory `now`.
    ///
    /// Stores call the check under the lock that also covers the change.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] if the change is not allowed.
    pub fn check(&self, now: &dyn Lookup) -> Result<(), ChangeError> {
        match self {
            Self::AddDomain(domain) => {
                domain.catch_all.as_deref().map_or(Ok(()), check_target)?;
                match now.domain(&domain.name)? {
                    Some(_) => Err(ChangeError::DomainExists(domain.name.clone())),
                    None => Ok(()),
                }
            }
            Self::SetCatchAll(name, target) => {
                target.as_deref().map_or(Ok(()), check_target)?;
                domain_exists(now, name)
            }
            Self::RemoveDomain(name) => {
                domain_exists(now, name)?;
                match now.count(name)? {
                    (0, 0) => Ok(()),
                    (accounts, aliases) => {
                        Err(ChangeError::DomainInUse(name.clone(), accounts, aliases))
                    }
                }
            }
            Self::AddAccount(account) => {
                domain_exists(now, account.name.domain())?;
                match now.account(&account.name)? {
                    Some(_) => Err(ChangeError::AccountExists(account.name.clone())),
                    None => Ok(()),
                }
            }
            Self::SetCredentials(name, _) | Self::RemoveAccount(name) => {
                let found = now.account(name)?.map(drop);
                found.ok_or_else(|| ChangeError::NoSuchAccount(name.clone()))
            }
            Self::SetAlias(alias) => {
                domain_exists(now, alias.name.domain())?;
                if !(1..=TARGETS_MAX).contains(&alias.targets.len()) {
                    return Err(ChangeError::TargetCount(alias.targets.len()));
                }
                alias
                    .targets
                    .iter()
                    .try_for_each(|target| check_target(target))
            }
            Self::RemoveAlias(name) => {
                let found = now.alias(name)?.map(drop);
                found.ok_or_else(|| ChangeError::NoSuchAlias(name.clone()))
            }
        }
    }
}

fn domain_exists(now: &dyn Lookup, name: &DomainName) -> Result<(), ChangeError> {
    let found = now.domain(name)?.map(drop);
    found.ok_or_else(|| ChangeError::NoSuchDomain(name.clone()))
}

/// Refuses what cannot be an address; the engine above knows the whole grammar.
fn check_target(target: &str) -> Result<(), ChangeError> {
    let shape = target.len() <= ADDRESS_OCTETS_MAX
        && !target.chars().any(char::is_control)
        && target
            .rsplit_once('@')
            .is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty());
    if shape {
        Ok(())
    } else {
        Err(ChangeError::Target(target.chars().take(64).collect()))
    }
}
