//! The durable compare-and-set register in which spool groups keep who their members are.
//!
//! [`Register`] keeps small values under names, each with a version, and replaces one only when its
//! version is still the expected one. What the values mean is the engine's business (`vere-spool`).
//! On one machine it is a folder of synced files ([`FileRegister`]), which any number of processes
//! may use at once; on several it is etcd ([`EtcdRegister`]). The formats are drawn in `docs/internals/membership-register.md`.
//!
//! There is no way to delete a value: a version is never used twice for one key.
//!
//! Not covered: watches (readers poll), values beyond [`VALUE_MAX`], several keys in one change.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use vere_cluster::{FileRegister, Register, Swap};
//!
//! # let folder = tempfile::tempdir()?;
//! let register = Register::File(FileRegister::open(folder.path())?);
//! let Swap::Done(version) = register.swap("group/a", None, b"one").await? else { panic!() };
//! let Swap::Conflict(Some(there)) = register.swap("group/a", None, b"two").await? else { panic!() };
//! assert_eq!((there.version, there.value.as_slice()), (version, b"one".as_slice()));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod etcd;
mod file;
mod key;
mod open;

pub use error::RegisterError;
pub use etcd::{ClientCertificate, EtcdOptions, EtcdRegister, Login};
pub use file::FileRegister;

/// Octets of a value.
pub const VALUE_MAX: usize = 64 * 1024;
/// Octets of the name in a key, which is what follows `group/` or `lease/`.
pub const NAME_MAX: usize = 255;

/// A value with the version it has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Greater than 0, and greater than that of every earlier value under the key.
    pub version: u64,
    /// At most [`VALUE_MAX`] octets.
    pub value: Vec<u8>,
}

/// What became of a swap whose outcome is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The value is there, durably, under this version.
    Done(u64),
    /// Nothing was changed: this is there instead of what was expected.
    Conflict(Option<Versioned>),
}

/// A register of either kind; clones share it.
///
/// Keys are `group/NAME` and `lease/NAME`; a name is any text of 1 to [`NAME_MAX`] octets.
#[derive(Debug, Clone)]
pub enum Register {
    /// On this machine.
    File(FileRegister),
    /// On a cluster.
    Etcd(EtcdRegister),
}

impl Register {
    /// Reads the newest value (linearizable); `None` when there was never one.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; nothing was changed.
    pub async fn read(&self, key: &str) -> Result<Option<Versioned>, RegisterError> {
        match self {
            Self::File(file) => file.read(key).await,
            Self::Etcd(etcd) => etcd.read(key).await,
        }
    }

    /// Replaces the value of `expected` version; with `None` there must be no value yet.
    ///
    /// A call that is dropped before it ends may still take effect.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; it says whether the swap may have taken effect, or may yet.
    pub async fn swap(
        &self,
        key: &str,
        expected: Option<u64>,
        value: &[u8],
    ) -> Result<Swap, RegisterError> {
        match self {
            Self::File(file) => file.swap(key, expected, value).await,
            Self::Etcd(etcd) => etcd.swap(key, expected, value).await,
        }
    }

    /// Lists the values whose keys begin with `prefix`, in the order of the keys' octets.
    ///
    /// Each was the newest of its key at some moment of the call, not all at the same.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; nothing was changed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, RegisterError> {
        match self {
            Self::File(file) => file.list(prefix).await,
            Self::Etcd(etcd) => etcd.list(prefix).await,
        }
    }
}
