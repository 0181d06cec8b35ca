//! The errors of a configuration file.

use std::fmt;

/// All errors of a file, in the order of lines. The fault is the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    file: String,
    errors: Vec<ConfigError>,
}

impl ConfigErrors {
    pub(crate) fn new(file: &str, mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| error.line);
        Self {
            file: file.to_owned(),
            errors,
        }
    }

    /// Gives the name of the file, as it was given to the parser.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Lists the errors; the list is never empty.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.errors
    }
}

impl fmt::Display for ConfigErrors {
    /// Writes a line for each error: `file:line: key: problem`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors.iter().enumerate() {
            let end = if n == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{error}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// An error with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The line in the file, from 1; for a missing key the line of its section.
    pub line: usize,
    /// The whole key, as `limits.recipients_max` or `route[2].next_hop` (counted from 1); empty
    /// where the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            return write!(f, "{}: {}", self.line, self.problem);
        }
        write!(f, "{}: {}: {}", self.line, self.key, self.problem)
    }
}

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The text is not TOML, or a key stands twice; the parser's own words.
    Syntax(String),
    /// The file is larger than any configuration; octets found and allowed.
    TooLarge(usize, usize),
    /// The key or section is unknown; with the nearest known name, if any.
    UnknownKey(Option<String>),
    /// The value has another type than the key.
    WrongType {
        /// What stands there.
        found: &'static str,
        /// The expected value, with an example.
        wanted: String,
    },
    /// The value has the right type and is not allowed.
    NotAllowed {
        /// The value found, shortened.
        found: String,
        /// The problem, or the permitted range.
        allowed: String,
    },
    /// The key must be there; an example line.
    Missing(String),
    /// The key `version` must be there.
    VersionMissing,
    /// The file is written for another version of the format.
    VersionUnknown(i64),
    /// The value contradicts another value; the text names both.
    Conflict(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(text) => f.write_str(text),
            Self::TooLarge(found, max) => {
                write!(
                    f,
                    "expected a file of at most {max} bytes; found {found} bytes"
                )
            }
            Self::UnknownKey(None) => f.write_str("unknown key"),
            Self::UnknownKey(Some(near)) => {
                write!(f, "unknown key, the nearest known one is {near}")
            }
            Self::WrongType { found, wanted } => write!(f, "expected {wanted}; found {found}"),
            Self::NotAllowed { found, allowed } => write!(f, "{found}: {allowed}"),
            Self::Missing(example) => write!(f, "is missing; add a line such as: {example}"),
            Self::VersionMissing => f.write_str("is missing; add this first line: version = 1"),
            Self::VersionUnknown(found) => {
                write!(f, "expected version 1 of the file; found {found}")
            }
            Self::Conflict(text) => f.write_str(text),
        }
    }
}
