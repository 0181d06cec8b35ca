//! Reference pages are printed by the program itself, or made from a file that the program does not read; a page that
//! differs is out of date.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::events;
use crate::finding::{Finding, Outcome};
use crate::watching;
use crate::workspace::Workspace;

/// Folder of the pages, relative to the root.
const FOLDER: &str = "docs/reference";

/// The source of a page.
enum Source {
    /// `vere` with these arguments prints the page.
    Printed(&'static [&'static str]),
    /// A function here makes the page.
    Made(fn(&Workspace) -> Result<String, String>),
}

/// Each page and its source.
const PAGES: &[(&str, Source)] = &[
    (
        "docs/reference/alarms.md",
        Source::Made(watching::alarm_page),
    ),
    (
        "docs/reference/commands.md",
        Source::Printed(&["man", "--markdown"]),
    ),
    (
        "docs/reference/config.md",
        Source::Printed(&["config", "reference"]),
    ),
    ("docs/reference/log.md", Source::Made(events::page)),
    (
        "docs/reference/volume.md",
        Source::Printed(&["config", "reference", "--volume"]),
    ),
];

impl Source {
    fn text(&self, workspace: &Workspace) -> Result<String, String> {
        match self {
            Self::Printed(arguments) => printed(workspace, arguments),
            Self::Made(make) => make(workspace),
        }
    }
}

/// Compares every page with its source.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut findings: Vec<Finding> = workspace
        .files
        .iter()
        .filter(|file| file.starts_with(FOLDER))
        .filter(|file| {
            !PAGES
                .iter()
                .any(|(page, _)| Path::new(page) == file.as_path())
        })
        .map(|file| Finding::new(file, 0, "nothing makes this page (xtask/src/generated.rs)"))
        .collect();
    for (page, source) in PAGES {
        match source.text(workspace) {
            Err(error) => findings.push(Finding::new(*page, 0, error)),
            Ok(now) => findings.extend(difference(page, &workspace.text(Path::new(page)), &now)),
        }
    }
    findings.into()
}

/// Writes every page anew.
pub(crate) fn write(workspace: &Workspace) -> Outcome {
    let mut findings = Vec::new();
    for (page, source) in PAGES {
        let written = source.text(workspace).and_then(|text| {
            fs::write(workspace.root.join(page), text).map_err(|error| error.to_string())
        });
        findings.extend(written.err().map(|error| Finding::new(*page, 0, error)));
    }
    findings.into()
}

fn printed(workspace: &Workspace, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("cargo")
        .args([
            "run",
            "--quiet",
            "--offline",
            "--locked",
            "--package",
            "vere",
            "--",
        ])
        .args(arguments)
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "vere {} failed: {}",
            arguments.join(" "),
            said.trim()
        ))
    }
}

/// The first different line.
fn difference(page: &str, committed: &str, now: &str) -> Option<Finding> {
    if committed == now {
        return None;
    }
    let same = committed
        .lines()
        .zip(now.lines())
        .take_while(|(old, new)| old == new)
        .count();
    let what = "differs from its source: run `cargo xtask generated --write`";
    Some(Finding::new(page, same + 1, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(difference("a.md", "x\ny\n", "x\ny\n"), None);
        assert_eq!(difference("a.md", "x\ny\n", "x\nz\n").unwrap().line, 2);
        assert_eq!(difference("a.md", "", "x\n").unwrap().line, 1);
        assert_eq!(difference("a.md", "x", "x\n").unwrap().line, 2);
    }
}
