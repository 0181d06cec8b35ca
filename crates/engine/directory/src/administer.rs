//! Changes to a directory, checked as a whole address grammar asks.

use vere_ports::directory::{
    Account, AccountName, Alias, Change, ChangeError, Credentials, Domain, DomainName,
};
use vere_smtp::address::AddrSpec;

use crate::Directory;

/// Every change is made whole or not at all, and is durable when its function returns.
impl Directory {
    /// Adds a domain, with an optional address for mail to unknown users.
    ///
    /// # Errors
    ///
    /// [`ChangeError::DomainExists`], [`ChangeError::Target`], [`ChangeError::Store`].
    pub fn add_domain(&self, name: DomainName, catch_all: Option<&str>) -> Result<(), ChangeError> {
        let catch_all = catch_all.map(target).transpose()?;
        self.store
            .apply(&Change::AddDomain(Domain { name, catch_all }))
    }

    /// Replaces the address that gets mail for unknown users of a domain.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchDomain`], [`ChangeError::Target`], [`ChangeError::Store`].
    pub fn set_catch_all(
        &self,
        name: DomainName,
        catch_all: Option<&str>,
    ) -> Result<(), ChangeError> {
        let catch_all = catch_all.map(target).transpose()?;
        self.store.apply(&Change::SetCatchAll(name, catch_all))
    }

    /// Removes a domain that has no accounts and aliases any more.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchDomain`], [`ChangeError::DomainInUse`], [`ChangeError::Store`].
    pub fn remove_domain(&self, name: DomainName) -> Result<(), ChangeError> {
        self.store.apply(&Change::RemoveDomain(name))
    }

    /// Adds an account; without credentials no login is possible.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchDomain`], [`ChangeError::AccountExists`], [`ChangeError::Store`].
    pub fn add_account(
        &self,
        name: AccountName,
        credentials: Option<Credentials>,
    ) -> Result<(), ChangeError> {
        self.store
            .apply(&Change::AddAccount(Account { name, credentials }))
    }

    /// Replaces the credentials of an account.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchAccount`], [`ChangeError::Store`].
    pub fn set_credentials(
        &self,
        name: AccountName,
        credentials: Option<Credentials>,
    ) -> Result<(), ChangeError> {
        self.store.apply(&Change::SetCredentials(name, credentials))
    }

    /// Lets an account log in, or refuses its logins and keeps its password. Returns whether that changes something; an
    /// account without a password has nothing to refuse.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchAccount`], [`ChangeError::Store`].
    pub fn set_enabled(&self, name: &AccountName, enabled: bool) -> Result<bool, ChangeError> {
        let account = self.store.account(name)?;
        let account = account.ok_or_else(|| ChangeError::NoSuchAccount(name.clone()))?;
        let Some(old) = account.credentials else {
            return Ok(false);
        };
        let new = match enabled {
            true => old.unlocked(),
            false => old.locked(),
        };
        let changes = new != old;
        if changes {
            self.set_credentials(name.clone(), Some(new))?;
        }
        Ok(changes)
    }

    /// Removes an account; its mailboxes are not touched.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchAccount`], [`ChangeError::Store`].
    pub fn remove_account(&self, name: AccountName) -> Result<(), ChangeError> {
        self.store.apply(&Change::RemoveAccount(name))
    }

    /// Adds an alias or replaces its targets: addresses, local or not, without duplicates.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchDomain`], [`ChangeError::Target`], [`ChangeError::TargetCount`],
    /// [`ChangeError::Store`].
    pub fn set_alias<'a>(
        &self,
        name: AccountName,
        targets: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ChangeError> {
        let mut kept: Vec<String> = Vec::new();
        for text in targets {
            let address = target(text)?;
            if !kept.contains(&address) {
                kept.push(address);
            }
        }
        self.store.apply(&Change::SetAlias(Alias {
            name,
            targets: kept,
        }))
    }

    /// Removes an alias.
    ///
    /// # Errors
    ///
    /// [`ChangeError::NoSuchAlias`], [`ChangeError::Store`].
    pub fn remove_alias(&self, name: AccountName) -> Result<(), ChangeError> {
        self.store.apply(&Change::RemoveAlias(name))
    }
}

/// Checks an address against the whole grammar and returns the stored form.
fn target(text: &str) -> Result<String, ChangeError> {
    match AddrSpec::parse(text) {
        Ok(address) => Ok(address.as_str().to_owned()),
        Err(_) => Err(ChangeError::Target(text.chars().take(64).collect())),
    }
}
