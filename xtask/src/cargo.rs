//! The checks carried out by cargo.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

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
///
/// Cargo checks a crate once more when a feature or the wrapper of the compiler differs. With `--examples` the features
/// of test dependencies count, as in [`clippy`], and the wrapper is that of clippy: nothing is checked twice. The named
/// programs are those whose library has another name, as `cargo doc` would choose them.
pub(crate) fn docs(workspace: &Workspace) -> Outcome {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--lib",
        "--bin=vere",
        "--bin=xtask",
        "--examples",
        "--locked",
        "--offline",
    ];
    let driver = clippy_driver();
    let mut variables = vec![("RUSTDOCFLAGS", "-D warnings")];
    if let Some(driver) = &driver {
        variables.extend([
            ("RUSTC_WORKSPACE_WRAPPER", driver.as_str()),
            ("CLIPPY_ARGS", CLIPPY_ARGS),
        ]);
    }
    run(workspace, &arguments, &variables, "rustdoc found the above")
}

/// How `cargo clippy` hands `-D warnings` to its driver. Another form costs a check of all crates, and nothing else.
const CLIPPY_ARGS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// The path under which `cargo clippy` runs its driver, if the driver is installed.
fn clippy_driver() -> Option<String> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = String::from_utf8(output.ok()?.stdout).ok()?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    driver.is_file().then(|| driver.display().to_string())
}

/// Builds with cargo, which prints its diagnostics; returns its messages, one for each crate and target.
pub(crate) fn messages(workspace: &Workspace, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let mut child = Command::new("cargo")
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(&workspace.root)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let lines = child.stdout.take().into_iter();
    let lines = lines.flat_map(|stdout| BufReader::new(stdout).lines().map_while(Result::ok));
    let messages = lines.filter_map(|line| serde_json::from_str(&line).ok());
    let messages: Vec<Value> = messages.collect();
    match child.wait() {
        Ok(status) if status.success() => Ok(messages),
        Ok(_) => Err(format!("cargo {} found the above", arguments.join(" "))),
        Err(error) => Err(error.to_string()),
    }
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
