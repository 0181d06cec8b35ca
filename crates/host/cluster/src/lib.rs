//! The durable compare-and-set register for the membership of spool groups.
//!
//! [`Register`] keeps small values under names, each with a version, and replaces a value only when its version is
//! the expected version. The engine (`vere-owner`) interprets the values. On a single machine the register is a
//! directory of synced files ([`FileRegister`]), shared by any number of processes; on several machines the register
//! is etcd ([`EtcdRegister`]). The formats are drawn in `docs/internals/membership-register.md`.
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
/// Octets of the name in a key, behind `group/` or `lease/`.
pub const NAME_MAX: usize = 255;

/// A value with its version in the register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// Greater than 0, and greater than that of every earlier value under the key.
    pub version: u64,
    /// At most [`VALUE_MAX`] octets.
    pub value: Vec<u8>,
}

/// The known outcome of a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The value is stored durably under this version.
    Done(u64),
    /// No value was changed: the present value differs from the expected version.
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
    /// Reads the newest value (linearizable); `None` when the key never had a value.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn read(&self, key: &str) -> Result<Option<Versioned>, RegisterError> {
        match self {
            Self::File(file) => file.read(key).await,
            Self::Etcd(etcd) => etcd.read(key).await,
        }
    }

    /// Replaces the value of `expected` version; with `None` there must be no value yet.
    ///
    /// A call dropped before its end may still take effect.
    ///
    /// # Errors
    ///
    /// [`RegisterError`], with a mark if the swap may have taken effect, or may take effect later.
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
    /// Each value was the newest of its key at some moment of the call, not all at the same moment.
    ///
    /// # Errors
    ///
    /// [`RegisterError`]; no value was changed.
    pub async fn list(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, RegisterError> {
        match self {
            Self::File(file) => file.list(prefix).await,
            Self::Etcd(etcd) => etcd.list(prefix).await,
        }
    }
}
