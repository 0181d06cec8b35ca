//! Why a log is not opened.

use std::fmt;
use std::io;

/// Why a store was not opened. What is in it is not empty but unknown.
#[derive(Debug)]
pub enum OpenError {
    /// Octets that were synced are not what was written.
    Damaged {
        /// The file.
        file: String,
        /// Where in it the damage begins.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// Written by a version this one does not read.
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// A record, whole, of a kind that this version does not read. What it changed is not known here, so
    /// that nothing behind it can be told either; the version that wrote it reads, and repairs, the log.
    Kind {
        /// The file.
        file: String,
        /// Where in it the record begins.
        offset: u64,
        /// Its kind.
        kind: u8,
    },
    /// A file could not be read or written.
    Io {
        /// The file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// The metadata engine did not do as asked.
    Meta(vere_ports::mail_meta::MetaError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged {
                file,
                offset,
                reason,
            } => write!(f, "{file} is damaged at offset {offset}: {reason}"),
            Self::Version { file, version } => {
                write!(f, "{file} has format version {version}, not read here")
            }
            Self::Kind { file, offset, kind } => write!(
                f,
                "{file} has a record of kind {kind} at offset {offset}, not read here: use the version \
                 that wrote it"
            ),
            Self::Io { file, error } => write!(f, "{file}: {error}"),
            Self::Meta(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

pub(crate) fn io_error(file: &str) -> impl Fn(io::Error) -> OpenError + '_ {
    move |error| OpenError::Io {
        file: file.to_owned(),
        error,
    }
}
