//! mdBook builds the book, and finds pages with errors.

use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::tools;
use crate::workspace::Workspace;

/// The folder of the built book, relative to the root.
const BUILT: &str = "target/book";

/// Builds the book.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let Some(program) = tools::find(workspace, "mdbook", "bin/mdbook") else {
        return Outcome::Skipped(
            "mdbook is not installed (scripts/install-test-tools.sh, or cargo install mdbook)"
                .to_owned(),
        );
    };
    let built = Command::new(program)
        .args(["build", "--dest-dir", BUILT])
        .current_dir(&workspace.root)
        .output();
    match built {
        Ok(output) if output.status.success() => Outcome::Told(format!("{BUILT}/index.html")),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Outcome::Failed(vec![Finding::new("book.toml", 0, said)])
        }
        Err(error) => Outcome::Failed(vec![Finding::new("book.toml", 0, error.to_string())]),
    }
}
