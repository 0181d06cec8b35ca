//! `deny.toml`, checked by cargo-deny where installed.

use std::process::{Command, Stdio};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// Runs the checks that need no network.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let present = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if present.is_err() {
        return Outcome::Skipped(
            "cargo-deny is not installed (cargo install cargo-deny)".to_owned(),
        );
    }
    let status = Command::new("cargo-deny")
        .args([
            "--offline",
            "--all-features",
            "check",
            "bans",
            "licenses",
            "sources",
        ])
        .current_dir(&workspace.root)
        .status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(vec![Finding::new("deny.toml", 0, status.to_string())]),
        Err(error) => Outcome::Failed(vec![Finding::new("deny.toml", 0, error.to_string())]),
    }
}
