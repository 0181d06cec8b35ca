//! How many packages are locked: a number to argue about when it grows (well-kept Rust servers lie
//! between 63 and 949, see `CONTRIBUTING.md`).

use std::path::Path;

use crate::finding::Outcome;
use crate::workspace::Workspace;

/// Counts them.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let lock = workspace.text(Path::new("Cargo.lock"));
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    let own = workspace.packages.len();
    Outcome::Told(format!(
        "{count} packages are locked, {own} of them our own"
    ))
}
