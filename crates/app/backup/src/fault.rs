//! Errors of the system, with the file in question.

use std::path::Path;

use vere_process::failure::Failure;

/// Adds the path to an error of the system.
pub(crate) fn at(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::new(format!("{}: {error}", path.display()))
}
