//! Errors of files, with lines.

use std::borrow::Cow;
use std::io;

/// Octets of a line that an error repeats.
const EXCERPT_MAX: usize = 60;

/// The file, line and reason of data that were refused.
#[derive(Debug, thiserror::Error)]
#[error("{file}: line {line}: {reason}")]
pub struct DataError {
    /// The name of the file, as the caller gave it.
    pub file: Box<str>,
    /// The line, counted from 1; 0 before the first.
    pub line: u64,
    /// Why the line was refused.
    pub reason: Reason,
}

/// Why a line was refused.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The input could not be read.
    #[error("expected a readable file; found {0}")]
    Read(#[from] io::Error),
    /// The line has another form, or a value outside its bounds.
    #[error("expected {expected}; found {found}")]
    Syntax {
        /// What the format has in this place.
        expected: Cow<'static, str>,
        /// What the line has.
        found: Box<str>,
    },
}

impl Reason {
    /// The reason for octets against the format.
    pub(super) fn syntax(expected: impl Into<Cow<'static, str>>, found: &[u8]) -> Self {
        Self::Syntax {
            expected: expected.into(),
            found: excerpt(found).into(),
        }
    }

    /// The reason for a count or size outside its bounds.
    pub(super) fn bound(expected: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Self::Syntax {
            expected: expected.into(),
            found: found.into().into(),
        }
    }
}

/// Printable text of the first octets of a line, in quotation marks.
fn excerpt(found: &[u8]) -> String {
    let found = found.trim_ascii();
    if found.is_empty() {
        return "nothing".to_owned();
    }
    match found.get(..EXCERPT_MAX) {
        Some(start) => format!("\"{}...\"", start.escape_ascii()),
        None => format!("\"{}\"", found.escape_ascii()),
    }
}
