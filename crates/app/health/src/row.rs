//! The result of one check, for `vere dns check` and `vere doctor`.

use std::fmt::Write as _;

use serde::Serialize;
use vere_net::resolver::LookupFailure;

use crate::finding::{Finding, Level};

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    /// The name of the check.
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    /// The result in words.
    pub(crate) text: String,
    /// The remedy; absent for a good result.
    pub(crate) remedy: Option<String>,
}

impl Row {
    pub(crate) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            text: text.into(),
            remedy: None,
        }
    }

    pub(crate) fn warning(
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

    pub(crate) fn critical(
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
    pub(crate) fn unanswered(check: &'static str, name: &str, failure: &LookupFailure) -> Self {
        Self::critical(
            check,
            format!("{name} cannot be looked up: {failure}"),
            format!("see that the name servers of {name} answer, then try again"),
        )
    }
}

impl From<Finding> for Row {
    /// A finding of `vere status`.
    fn from(finding: Finding) -> Self {
        Self {
            check: "status",
            level: finding.level,
            text: finding.text,
            remedy: Some(finding.remedy),
        }
    }
}

/// Writes a line for each row, and a line for each remedy.
pub(crate) fn in_text(out: &mut String, rows: &[Row]) {
    for row in rows {
        // Others write what is in the DNS.
        let text = printable(&row.text);
        let _ = writeln!(out, "  {:<8} {:<12} {text}", row.level.word(), row.check);
        if let Some(remedy) = &row.remedy {
            let _ = writeln!(out, "  {:<8} {:<12} -> {}", "", "", printable(remedy));
        }
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}
