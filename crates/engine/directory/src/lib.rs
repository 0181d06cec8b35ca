//! Domains, accounts, aliases and credentials behind a single engine.
//!
//! [`Directory`] answers the two questions of a mail system about its users: the destination of
//! mail for an address ([`Directory::resolve`]), and the identity of a client
//! ([`Directory::verify_password`], [`Directory::scram_keys`]). The engine also makes every change,
//! so that commands and consoles share its checks ([`administer`]). The records lie in a
//! [`DirectoryStore`], implemented by hosts.
//!
//! Names: domains compare as A-labels in lower case; local parts after normalisation to NFC and
//! conversion to lower case. An exact name is tried before the name without its tag, an alias
//! before an account of the same name, and an alias that names itself means the account: a user can
//! thus keep a copy of forwarded mail.
//!
//! Not covered: quotas, groups, LDAP, and the handling of the message.
//!
//! ```
//! use std::sync::Arc;
//! use vere_directory::{Directory, Resolution};
//! use vere_ports::directory::{AccountName, DomainName, MemoryStore};
//! use vere_smtp::address::AddrSpec;
//!
//! let directory = Directory::new(Arc::new(MemoryStore::default()), Some('+'));
//! directory.add_domain(DomainName::parse("example.org")?, None)?;
//! let alice = AccountName::parse("alice@example.org")?;
//! directory.add_account(alice.clone(), None)?;
//!
//! let found = directory.resolve(&AddrSpec::parse("Alice+news@example.org")?)?;
//! assert_eq!(found, Resolution::Local { account: alice, tag: Some("news".to_owned()) });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod administer;
mod login;
pub mod password;
mod resolve;

use std::sync::Arc;

use vere_ports::directory::{AccountName, DirectoryStore, DomainName, StoreError};

pub use login::Login;
pub use resolve::{EXPANSION_MAX, Resolution, Target};

/// The engine; cheap to clone, used by many threads.
///
/// Calls block as long as the store does. Only [`verify_password`](Self::verify_password) computes:
/// some ten milliseconds and 19 MiB each time, so hosts run it on a bounded number of threads.
#[derive(Debug, Clone)]
pub struct Directory {
    store: Arc<dyn DirectoryStore>,
    separator: Option<char>,
}

impl Directory {
    /// Makes an engine over a store. `separator` stands between user name and tag; without one,
    /// addresses have no tags.
    #[must_use]
    pub fn new(store: Arc<dyn DirectoryStore>, separator: Option<char>) -> Self {
        Self { store, separator }
    }

    /// Gives the store, for listings.
    #[must_use]
    pub fn store(&self) -> &dyn DirectoryStore {
        &*self.store
    }

    /// Says whether this system is the destination of `domain`, in any form.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    pub fn is_local_domain(&self, domain: &str) -> Result<bool, StoreError> {
        match DomainName::parse(domain) {
            Ok(name) => Ok(self.store.domain(&name)?.is_some()),
            Err(_) => Ok(false),
        }
    }
}

/// Says why the engine cannot answer. The fault is local: peers get a temporary error, `451 4.3.0`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The store cannot answer.
    #[error("{0}")]
    Store(StoreError),
    /// The credentials of this account cannot be read; a new password repairs them.
    #[error(
        "the credentials of {0} cannot be read, set the password anew: \
         vere account passwd {0}"
    )]
    Credentials(AccountName),
}

impl From<StoreError> for DirectoryError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "two tests measure how long a call takes"
)]
mod tests;
