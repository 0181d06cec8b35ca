//! `ARCHITECTURE.md` names every existing crate by its folder, and no other folder.

use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The document, relative to the root.
const DOCUMENT: &str = "ARCHITECTURE.md";

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
    findings.into()
}

/// Code spans that look like paths of crates, or of files in crates.
fn named_folders(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|span| {
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
}
