//! What is left to be done when a command has succeeded.

use std::process::ExitCode;

/// What a command that succeeded leaves to be done.
#[derive(Debug)]
pub enum Outcome {
    /// Print this.
    Print(String),
    /// Print this and end with this code.
    Report(String, ExitCode),
    /// End with this code.
    Exit(ExitCode),
}

impl Outcome {
    /// The text of a command that looks for faults. Exit code 3: faults were found; 1 is for commands that could not look.
    #[must_use]
    pub fn of_findings(text: String, found: bool) -> Self {
        const FINDINGS: u8 = 3;
        Self::Report(text, ExitCode::from(if found { FINDINGS } else { 0 }))
    }
}
