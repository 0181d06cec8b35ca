//! The result of one check.

use serde::Serialize;
use vere_net::resolver::LookupFailure;

use crate::finding::Level;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// The name of the check.
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// What was found.
    pub(super) text: String,
    /// The remedy; absent for a good result.
    pub(super) remedy: Option<String>,
}

impl Row {
    pub(super) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            text: text.into(),
            remedy: None,
        }
    }

    pub(super) fn warning(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level: Level::Warning,
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }

    pub(super) fn critical(
        check: &'static str,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Critical,
            ..Self::warning(check, text, remedy)
        }
    }

    /// The name servers of the name do not answer: other systems see that, too.
    pub(super) fn unanswered(check: &'static str, name: &str, failure: &LookupFailure) -> Self {
        Self::critical(
            check,
            format!("{name} cannot be looked up: {failure}"),
            format!("see that the name servers of {name} answer, then try again"),
        )
    }
}
