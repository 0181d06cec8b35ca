//! Errors of the system, with the file in question, and the exit code of findings.

use std::path::Path;
use std::process::ExitCode;

use vere_process::failure::Failure;

/// Adds the path to an error of the system.
pub(crate) fn at(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::new(format!("{}: {error}", path.display()))
}

/// The exit code of a command that looked for damage.
pub(crate) fn found(damage: bool) -> ExitCode {
    const FINDINGS: u8 = 3;
    ExitCode::from(if damage { FINDINGS } else { 0 })
}
