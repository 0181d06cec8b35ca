//! Errors of a segment.

use std::fmt;
use std::io;

/// Why a segment does not answer. Searches must read its messages instead.
#[derive(Debug)]
pub enum SearchError {
    /// The file is damaged, or another version wrote the file.
    Damaged,
    /// The error of the system.
    Io(io::Error),
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged => f.write_str("a segment of the search index is damaged"),
            Self::Io(error) => write!(f, "the search index: {error}"),
        }
    }
}

impl std::error::Error for SearchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Damaged => None,
            Self::Io(error) => Some(error),
        }
    }
}

impl From<io::Error> for SearchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged,
            _ => Self::Io(error),
        }
    }
}
