//! The reasons why a log cannot be opened.

use std::io;

/// The reason why a store was not opened. The contents of the store are unknown, not empty.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Synced octets fail verification.
    #[error("{file} is damaged at offset {offset}: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// The offset of the damage in the file.
        offset: u64,
        /// The fault at the offset.
        reason: String,
    },
    /// Written in a format version that this version does not read.
    #[error("{file} has format version {version}, not read here")]
    Version {
        /// The file.
        file: String,
        /// The format version of the file.
        version: u32,
    },
    /// An intact record of a kind that this version does not read. The effect of the record is unknown, so replay
    /// cannot continue behind the record. The version that wrote the record reads, and repairs, the log.
    #[error(
        "{file} has a record of kind {kind} at offset {offset}, not read here: use the version \
         that wrote it"
    )]
    Kind {
        /// The file.
        file: String,
        /// The offset of the record in the file.
        offset: u64,
        /// The kind of the record.
        kind: u8,
    },
    /// A file could not be read or written.
    #[error("{file}: {error}")]
    Io {
        /// The file.
        file: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The metadata engine failed.
    #[error("{0}")]
    Meta(vere_ports::mail_meta::MetaError),
}

pub(crate) fn io_error(file: &str) -> impl Fn(io::Error) -> OpenError + '_ {
    move |error| OpenError::Io {
        file: file.to_owned(),
        error,
    }
}
