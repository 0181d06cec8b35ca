//! The directory of domains, accounts and aliases: records, changes, and the trait of a store.
//!
//! The names are types that can only hold safe, canonical text ([`DomainName`], [`AccountName`]), so that neither a
//! store nor a path ever sees the raw input of a client. [`Change::check`] is the single check of a change's
//! conditions; every store calls the check under its own lock.

mod change;
mod names;
mod records;

pub use change::{Change, ChangeError};
pub use names::{AccountName, DomainName, LOCAL_PART_OCTETS_MAX, NameError};
pub use records::{MemoryStore, Records};

use std::fmt;
use std::path::PathBuf;

use vere_units::Secret;

/// A local domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// Its name.
    pub name: DomainName,
    /// The address that receives mail for unknown users; `None` refuses such mail.
    pub catch_all: Option<String>,
}

/// Somebody with a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Name and address of the account.
    pub name: AccountName,
    /// Credentials for logins; an account without credentials, or with locked ones, cannot log in.
    pub credentials: Option<Credentials>,
}

/// The stored form of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// An Argon2id hash as a PHC string.
    pub password_hash: Secret<String>,
    /// SCRAM-SHA-256 keys in the form of RFC 5803.
    pub scram_sha_256: Secret<String>,
}

/// In front of both parts of credentials that are kept and refused, as in shadow(5). Programs that do not know the mark
/// refuse such credentials, too.
const LOCK: char = '!';

impl Credentials {
    /// Whether the credentials are kept and refused.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.password_hash.expose().starts_with(LOCK)
    }

    /// The credentials in the form that is refused.
    #[must_use]
    pub fn locked(&self) -> Self {
        let locked = |part: &Secret<String>| match part.expose().starts_with(LOCK) {
            true => part.clone(),
            false => Secret::new(format!("{LOCK}{}", part.expose())),
        };
        Self {
            password_hash: locked(&self.password_hash),
            scram_sha_256: locked(&self.scram_sha_256),
        }
    }

    /// The credentials in the form that is accepted.
    #[must_use]
    pub fn unlocked(&self) -> Self {
        let unlocked = |part: &Secret<String>| {
            let text = part.expose();
            Secret::new(text.strip_prefix(LOCK).unwrap_or(text).to_owned())
        };
        Self {
            password_hash: unlocked(&self.password_hash),
            scram_sha_256: unlocked(&self.scram_sha_256),
        }
    }
}

/// An address whose mail goes to other addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// The address.
    pub name: AccountName,
    /// The target addresses, local or not; at least one, at most [`TARGETS_MAX`].
    pub targets: Vec<String>,
}

/// The most targets of an alias: a longer list is a mailing list, the task of other software.
pub const TARGETS_MAX: usize = 1_000;

/// The selection of records for a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Restricts the listing to accounts of the domain.
    pub domain: Option<DomainName>,
    /// Restricts the listing to accounts whose names sort after this name.
    pub after: Option<AccountName>,
    /// Maximum number of accounts.
    pub limit: usize,
}

/// The lookups for resolving addresses and checking changes.
pub trait Lookup {
    /// Finds a domain.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError>;

    /// Finds an account.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError>;

    /// Finds an alias.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError>;

    /// Counts the accounts and aliases of a domain.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError>;
}

/// A store of domains, accounts and aliases that several threads and processes use at once.
///
/// Lookups see every change finished earlier by any process. Calls may block on a disk, for microseconds in the
/// ordinary case and for seconds behind another process's change.
pub trait DirectoryStore: Lookup + fmt::Debug + Send + Sync {
    /// Checks and makes a change atomically; the change is durable on return.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]: the change is not allowed, or the store cannot make it.
    fn apply(&self, change: &Change) -> Result<(), ChangeError>;

    /// Returns a number that differs after each change by any process: a cache of lookups is valid while the number
    /// is unchanged.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read.
    fn revision(&self) -> Result<u64, StoreError>;

    /// Lists all domains, sorted.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot say.
    fn domains(&self) -> Result<Vec<Domain>, StoreError>;

    /// Lists accounts, sorted by the octets of their names.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read.
    fn accounts(&self, page: &Page) -> Result<Vec<Account>, StoreError>;

    /// Lists aliases, sorted by the octets of their names.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the store cannot be read.
    fn aliases(&self, page: &Page) -> Result<Vec<Alias>, StoreError>;
}

/// Says why a store cannot answer. The fault is local and passes when an operator acts, so that
/// peers get a temporary error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused: the operation, the file, and the error text.
    #[error("cannot {0} {1}: {2}")]
    System(&'static str, PathBuf, String),
    /// The store's content has an unexpected form: file and place.
    #[error("{0} is damaged: {1}")]
    Damaged(PathBuf, String),
    /// The store has another version of the format.
    #[error("{path}: expected format version {known}; found version {found}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known to this program.
        known: i64,
    },
    /// The database's own words.
    #[error("{0}: {1}")]
    Database(PathBuf, String),
    /// Another process holds the store for too long.
    #[error("{0} is held by another process")]
    Busy(PathBuf),
}
