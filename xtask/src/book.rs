//! mdBook builds the book, and finds pages with errors; every link of the built book leads to a file.

mod built;
mod staged;

use std::path::Path;
use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::tools;
use crate::workspace::Workspace;

/// The folder of the built book, and the folder of the pages that mdBook reads, relative to the root.
const BUILT: &str = "target/book";
const STAGED: &str = "target/book-pages";

/// Builds the book.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let Some(program) = tools::find(workspace, "mdbook", "bin/mdbook") else {
        return Outcome::Skipped(
            "mdbook is not installed (scripts/install-test-tools.sh, or cargo install mdbook)"
                .to_owned(),
        );
    };
    match build(workspace, &program) {
        Ok(findings) if findings.is_empty() => Outcome::Told(format!("{BUILT}/index.html")),
        Ok(findings) => Outcome::Failed(findings),
        Err(error) => Outcome::Failed(vec![Finding::new("book.toml", 0, error.to_string())]),
    }
}

fn build(workspace: &Workspace, program: &Path) -> std::io::Result<Vec<Finding>> {
    staged::write(workspace, &workspace.root.join(STAGED))?;
    let built = workspace.root.join(BUILT);
    let output = Command::new(program)
        .args(["build", STAGED, "--dest-dir"])
        .arg(&built)
        .current_dir(&workspace.root)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Ok(vec![Finding::new("book.toml", 0, said)]);
    }
    built::dead_links(&built)
}
