//! The results of a check.

use std::fmt;
use std::path::PathBuf;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path relative to the root of the workspace.
    pub(crate) file: PathBuf,
    /// Line from 1; 0 when the whole file is meant.
    pub(crate) line: usize,
    /// The violation, and the remedy.
    pub(crate) what: String,
}

impl Finding {
    pub(crate) fn new(file: impl Into<PathBuf>, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.what),
        }
    }
}

/// How a check ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing is wrong.
    Passed,
    /// No violation, and a text worth printing.
    Told(String),
    /// The check was impossible here, with the reason.
    Skipped(String),
    /// What is wrong.
    Failed(Vec<Finding>),
}

impl From<Vec<Finding>> for Outcome {
    fn from(findings: Vec<Finding>) -> Self {
        if findings.is_empty() {
            Self::Passed
        } else {
            Self::Failed(findings)
        }
    }
}
