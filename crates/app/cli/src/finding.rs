//! What a command finds wrong, with the remedy.

use serde::Serialize;

/// Severity, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// To be mended in time.
    Warning,
    /// Mail is stopped, refused elsewhere, or in danger.
    Critical,
}

/// Something that is not as it should be.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// One sentence without a point.
    pub(crate) text: String,
    /// What to do.
    pub(crate) remedy: String,
}

impl Finding {
    /// Something to be mended in time.
    pub(crate) fn warning(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            text: text.into(),
            remedy: remedy.into(),
        }
    }

    /// Something that stops mail, or soon will.
    pub(crate) fn critical(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Critical,
            ..Self::warning(text, remedy)
        }
    }
}

impl Level {
    /// The word of monitoring plugins.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}
