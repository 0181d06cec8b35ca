//! Why the mail store cannot be opened or repaired.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_ports::mail_meta::MetaError;
use vere_store::{OpenError, RepairError, StoreError};

/// Why the store cannot be used.
#[derive(Debug)]
pub enum FilesError {
    /// The store cannot be opened.
    Open {
        /// The store's folder, or the file in question.
        folder: PathBuf,
        /// Why.
        trouble: Trouble,
    },
    /// The store cannot be repaired.
    Repair {
        /// The store's folder.
        folder: PathBuf,
        /// Why.
        trouble: Trouble,
    },
    /// The kernel gives no random numbers.
    NoRandomNumbers(getrandom::Error),
}

/// Trouble with the store's folder, or with the content of the folder.
#[derive(Debug)]
pub enum Trouble {
    /// There is no store.
    Absent,
    /// Another process uses the store.
    InUse,
    /// A file cannot be read, written, moved or removed.
    File(io::Error),
    /// The metadata cannot be read or written.
    Meta(MetaError),
    /// The log cannot be opened.
    Log(OpenError),
    /// The store cannot continue.
    Store(StoreError),
    /// The log and its metadata cannot be repaired.
    Repair(RepairError),
    /// Metadata set aside earlier cannot be removed.
    Aside(Box<FilesError>),
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { folder, trouble } => {
                let folder = folder.display();
                write!(f, "cannot open the mail store in {folder}: {trouble}")
            }
            Self::Repair { folder, trouble } => {
                let folder = folder.display();
                write!(f, "cannot repair the mail store in {folder}: {trouble}")
            }
            Self::NoRandomNumbers(error) => write!(f, "no random numbers: {error}"),
        }
    }
}

/// The display holds the texts of all causes.
impl Error for FilesError {}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("there is none"),
            Self::InUse => f.write_str(
                "it is in use; stop the system first (its metrics vere_store_* tell much while it runs)",
            ),
            Self::File(error) => error.fmt(f),
            Self::Meta(error) => error.fmt(f),
            Self::Log(error @ OpenError::Damaged { .. }) => write!(
                f,
                "{error} (`vere store repair --dry-run` says what can be had of it; \
                 `vere store restored` goes on with a log that was put back from a copy)"
            ),
            Self::Log(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
            Self::Repair(error) => error.fmt(f),
            Self::Aside(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<MetaError> for Trouble {
    fn from(error: MetaError) -> Self {
        Self::Meta(error)
    }
}

impl From<OpenError> for Trouble {
    fn from(error: OpenError) -> Self {
        Self::Log(error)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<RepairError> for Trouble {
    fn from(error: RepairError) -> Self {
        Self::Repair(error)
    }
}

impl From<FilesError> for Trouble {
    fn from(error: FilesError) -> Self {
        Self::Aside(Box::new(error))
    }
}
