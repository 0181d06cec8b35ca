//! Findings of commands, with their remedies.

use serde::Serialize;

/// Severity, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// To be mended in time.
    Warning,
    /// Mail is stopped, refused elsewhere, or in danger.
    Critical,
}

/// A fault, or a sign of a coming fault.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// One sentence without a point.
    pub text: String,
    /// The remedy: a command or a step.
    pub remedy: String,
}

impl Finding {
    /// Something to be mended in time.
    #[must_use]
    pub fn warning(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Warning,
            text: text.into(),
            remedy: remedy.into(),
        }
    }

    /// Something that stops mail, or soon will.
    #[must_use]
    pub fn critical(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level: Level::Critical,
            ..Self::warning(text, remedy)
        }
    }
}

impl Level {
    /// The word of monitoring plugins.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }
}
