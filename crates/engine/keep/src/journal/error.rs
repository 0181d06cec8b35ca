//! Faults of a journal.

use std::io;

/// The version of segments.
pub(super) const VERSION: u32 = 1;

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk failed.
    #[error("the journal cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A segment is damaged in the midst: changes behind are there and cannot be applied in order.
    #[error(
        "{file}: expected a record at octet {at}; found damage, with more of the journal behind"
    )]
    Damaged {
        /// The segment.
        file: String,
        /// Where.
        at: u64,
    },
    /// The key opens no record.
    #[error("{file}: sealed with another key")]
    Key {
        /// The segment.
        file: String,
    },
    /// A later version has written the segment.
    #[error("{file}: expected version {VERSION}; found {found}")]
    Version {
        /// The segment.
        file: String,
        /// Its version.
        found: u32,
    },
}
