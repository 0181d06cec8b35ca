//! The result of a dry run.

use std::process::ExitCode;

use serde::Serialize;

/// Exit code when mail would be refused for good.
const REFUSED: u8 = 4;
/// Exit code when mail would wait and be tried again.
const DEFERRED: u8 = 3;

/// Whether mail would be taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The mail would be accepted now.
    Taken,
    /// The mail would be refused permanently.
    Refused,
    /// The mail would wait for another attempt.
    Deferred,
}

impl Verdict {
    /// The exit code: 0, 3 or 4.
    #[must_use]
    pub fn code(self) -> ExitCode {
        match self {
            Self::Taken => ExitCode::SUCCESS,
            Self::Refused => ExitCode::from(REFUSED),
            Self::Deferred => ExitCode::from(DEFERRED),
        }
    }

    /// The verdict as a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Taken => "mail would be taken now",
            Self::Refused => "mail would be refused for good",
            Self::Deferred => "mail would wait and be tried again",
        }
    }
}
