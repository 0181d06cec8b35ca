//! Shell scripts, checked by shellcheck where installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// Checks every shell script, detected by extension or first line.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    if Command::new("shellcheck")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return Outcome::Skipped(
            "shellcheck is not installed (apt-get install shellcheck)".to_owned(),
        );
    }
    let scripts: Vec<&PathBuf> = workspace
        .files
        .iter()
        .filter(|file| is_script(file, &workspace.text(file)))
        .collect();
    let status = Command::new("shellcheck")
        .arg("-x")
        .args(&scripts)
        .current_dir(&workspace.root)
        .status();
    match status {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(_) => Outcome::Failed(vec![Finding::new(
            "scripts",
            0,
            "shellcheck found the above",
        )]),
        Err(error) => Outcome::Failed(vec![Finding::new("scripts", 0, error.to_string())]),
    }
}

fn is_script(file: &Path, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    file.extension().is_some_and(|extension| extension == "sh")
        || (first.starts_with("#!") && (first.ends_with("bash") || first.ends_with("/sh")))
}
