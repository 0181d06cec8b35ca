//! Why a segment does not answer.

use std::fmt;
use std::io;

/// Why a segment does not answer. Its messages are to be read instead.
#[derive(Debug)]
pub enum SearchError {
    /// Not what was written, or not by this version.
    Damaged,
    /// What the system says.
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
