//! `deny.toml`, checked by cargo-deny: bans, duplicates, licences and sources, which need no network.
//! `advisories.rs` has the rest.

use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::tools;
use crate::workspace::Workspace;

/// A warning is a line of `deny.toml` that no package needs any more.
const ARGUMENTS: &[&str] = &[
    "--offline",
    "--all-features",
    "--workspace",
    "check",
    "--deny",
    "warnings",
    "--hide-inclusion-graph",
    "bans",
    "licenses",
    "sources",
];

/// Runs the checks that need no network.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let Some(program) = tools::find(workspace, "cargo-deny", "bin/cargo-deny") else {
        return tools::absent(
            "cargo-deny is not installed (scripts/install-test-tools.sh, or cargo install cargo-deny)",
        );
    };
    let status = Command::new(program)
        .args(ARGUMENTS)
        .current_dir(&workspace.root)
        .status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(vec![Finding::new("deny.toml", 0, status.to_string())]),
        Err(error) => Outcome::Failed(vec![Finding::new("deny.toml", 0, error.to_string())]),
    }
}
