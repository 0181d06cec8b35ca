//! The checks carried out by cargo.

use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// `cargo fmt --check`.
pub(crate) fn fmt(workspace: &Workspace) -> Outcome {
    run(
        workspace,
        &["fmt", "--all", "--check"],
        &[],
        "run `cargo fmt --all`",
    )
}

/// `cargo clippy` with warnings denied, tests and benches included.
pub(crate) fn clippy(workspace: &Workspace) -> Outcome {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--offline",
        "--",
        "-D",
        "warnings",
    ];
    run(workspace, &arguments, &[], "clippy found the above")
}

/// `cargo doc` with warnings denied.
pub(crate) fn docs(workspace: &Workspace) -> Outcome {
    let arguments = ["doc", "--workspace", "--no-deps", "--locked", "--offline"];
    run(
        workspace,
        &arguments,
        &[("RUSTDOCFLAGS", "-D warnings")],
        "rustdoc found the above",
    )
}

pub(crate) fn failed(what: String) -> Outcome {
    Outcome::Failed(vec![Finding::new("Cargo.toml", 0, what)])
}

pub(crate) fn run(
    workspace: &Workspace,
    arguments: &[&str],
    variables: &[(&str, &str)],
    advice: &str,
) -> Outcome {
    let status = Command::new("cargo")
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(&workspace.root)
        .status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => failed(advice.to_owned()),
        Err(error) => failed(error.to_string()),
    }
}
