//! `ARCHITECTURE.md` names every existing crate by its folder, and no other folder; its way of one message names
//! existing files, each once.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The document, relative to the root.
const DOCUMENT: &str = "ARCHITECTURE.md";

/// The section with the table of files that a message passes: `| step | folder | files |`.
const WAY: &str = "## The way of one message";

/// Files of the table at most: a newcomer reads all of them.
const WAY_FILES_MAX: usize = 110;

/// Compares the document with the members of the workspace.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let text = workspace.text(Path::new(DOCUMENT));
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let named = format!("`{}`", package.folder.display());
        if !text.contains(&named) {
            let what = format!(
                "does not name {named}, where the crate {} lies",
                package.name
            );
            findings.push(Finding::new(DOCUMENT, 0, what));
        }
    }
    for (index, line) in text.lines().enumerate() {
        for folder in named_folders(line) {
            if !workspace.root.join(folder).exists() {
                let what = format!("names `{folder}`, which does not exist");
                findings.push(Finding::new(DOCUMENT, index + 1, what));
            }
        }
    }
    findings.extend(way(&text, workspace));
    findings.into()
}

/// Checks the files of [`WAY`].
fn way(text: &str, workspace: &Workspace) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    let section = lines
        .skip_while(|(_, line)| *line != WAY)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    let (mut findings, mut files) = (Vec::new(), BTreeSet::new());
    for (index, line) in section.filter(|(_, line)| line.starts_with('|')) {
        let mut fault = |what| findings.push(Finding::new(DOCUMENT, index + 1, what));
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [_, folder, names] = cells.as_slice() else {
            // The line of dashes.
            continue;
        };
        let Some(folder) = spans(folder).next() else {
            continue;
        };
        for name in spans(names) {
            let file = format!("{folder}/{name}");
            if !workspace.root.join(&file).is_file() {
                fault(format!("names {file}, which does not exist"));
            }
            if !files.insert(file.clone()) {
                fault(format!(
                    "names {file} twice: a message passes no file again"
                ));
            }
        }
    }
    if files.len() > WAY_FILES_MAX {
        let what = format!(
            "expected {WAY_FILES_MAX} files on the way of one message at most; found {}",
            files.len()
        );
        findings.push(Finding::new(DOCUMENT, 0, what));
    }
    findings
}

/// The code spans of a text.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Code spans that look like paths of crates, or of files in crates.
fn named_folders(line: &str) -> impl Iterator<Item = &str> {
    spans(line).filter(|span| {
        let path = !span.contains(['*', '{', ' ', '<']);
        path && (span.starts_with("crates/") || span.starts_with("docs/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::{made_of, package};

    #[test]
    fn missing_and_stale_names_are_found() {
        let text = "`crates/base/units` and\n`crates/host/gone`, not `crates/*`\n";
        let (_folder, mut workspace) =
            made_of(&[(DOCUMENT, text), ("crates/base/units/Cargo.toml", "")]);
        workspace.packages = vec![
            package("crates/base/units", "vere-units", &[]),
            package("crates/base/ports", "vere-ports", &[]),
        ];
        let Outcome::Failed(findings) = check(&workspace) else {
            panic!("passed")
        };
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines[0].contains("crates/base/ports"), "{lines:?}");
        assert!(lines[1].starts_with("ARCHITECTURE.md:2: "), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn the_way_names_existing_files_once() {
        let text = format!(
            "{WAY}\n\n| step | folder | files |\n|---|---|---|\n| a `x` | `crates/a/src` | `lib.rs`, `gone.rs` |\n\
             | | `crates/a/src` | `lib.rs` |\n\n## Next\n| | `crates/b` | `none.rs` |\n"
        );
        let (_folder, workspace) =
            made_of(&[(DOCUMENT, text.as_str()), ("crates/a/src/lib.rs", "")]);
        let found: Vec<String> = way(&text, &workspace)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("gone.rs, which does not exist"),
            "{found:?}"
        );
        assert!(found[1].contains("lib.rs twice"), "{found:?}");
    }
}
