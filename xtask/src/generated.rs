//! Reference pages are printed by the program itself, or made from a file that the program does not read; a page that
//! differs is out of date.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::cargo;
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

/// Builds the program with the features that the build of all tests has, so that the tests build none of its crates
/// again: a target of tests, of any crate, lets the features of test dependencies count.
const BUILD: [&str; 7] = [
    "build",
    "--workspace",
    "--bin=vere",
    "--test=switching",
    "--quiet",
    "--locked",
    "--offline",
];

/// Runs the program, which is built once.
fn printed(workspace: &Workspace, arguments: &[&str]) -> Result<String, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let program = BUILT.get_or_init(|| program_of(&cargo::messages(workspace, &BUILD)?));
    let output = Command::new(program.as_ref()?)
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

/// The path of `vere` in the messages of cargo.
fn program_of(messages: &[Value]) -> Result<PathBuf, String> {
    let path = messages.iter().find_map(|message| {
        let target = message.get("target")?;
        let is_program = target.get("name")? == "vere" && target.pointer("/kind/0")? == "bin";
        let is_test = message.pointer("/profile/test")?.as_bool()?;
        let path = message.get("executable")?.as_str()?;
        (is_program && !is_test).then(|| path.into())
    });
    path.ok_or_else(|| "cargo named no program vere".to_owned())
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
    fn the_program_is_found_among_the_messages() {
        let message = |name: &str, kind: &str, is_test: bool| {
            serde_json::json!({"target": {"name": name, "kind": [kind]}, "profile": {"test": is_test},
                "executable": format!("/t/{kind}-{is_test}")})
        };
        let others = [
            message("vere", "bin", true),
            message("it", "test", true),
            message("vere", "lib", false),
            serde_json::json!({"reason": "build-finished"}),
        ];
        assert!(program_of(&others).is_err());
        let all = [&others[..], &[message("vere", "bin", false)]].concat();
        assert_eq!(program_of(&all), Ok(PathBuf::from("/t/bin-false")));
    }

    #[test]
    fn the_first_differing_line_is_named() {
        assert_eq!(difference("a.md", "x\ny\n", "x\ny\n"), None);
        assert_eq!(difference("a.md", "x\ny\n", "x\nz\n").unwrap().line, 2);
        assert_eq!(difference("a.md", "", "x\n").unwrap().line, 1);
        assert_eq!(difference("a.md", "x", "x\n").unwrap().line, 2);
    }
}
