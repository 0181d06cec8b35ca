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
