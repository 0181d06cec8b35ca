//! Errors of a segment.

use std::io;

/// Why a segment does not answer. Searches must read its messages instead.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The file is damaged, or another version wrote the file.
    #[error("a segment of the search index is damaged")]
    Damaged,
    /// The error of the system.
    #[error("the search index: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for SearchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}
