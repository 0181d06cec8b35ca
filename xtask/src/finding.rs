//! What a check says.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path relative to the root of the workspace.
    pub(crate) file: PathBuf,
    /// Line from 1; 0 when the whole file is meant.
    pub(crate) line: usize,
    /// What is wrong and what to do about it.
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
    /// Nothing is wrong, and there is something worth knowing.
    Told(String),
    /// It could not be done here, and why.
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
