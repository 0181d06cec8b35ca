//! Programs that checks run: installed on the machine, or put below `target/test-tools` by
//! `scripts/install-test-tools.sh`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The folder of unpacked programs, relative to the root.
const UNPACKED: &str = "target/test-tools";

/// The program by its name, or the first of the paths below `target/test-tools` that answers `--version`.
pub(crate) fn find(workspace: &Workspace, name: &str, unpacked: &str) -> Option<PathBuf> {
    let candidates = [
        workspace.root.join(UNPACKED).join(unpacked),
        PathBuf::from(name),
    ];
    candidates.into_iter().find(|program| {
        let version = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    })
}

/// The outcome of a check whose program is absent: a skip for a developer, a failure in CI.
pub(crate) fn absent(why: &str) -> Outcome {
    if std::env::var_os("CI").is_some() {
        let what = format!("{why}; CI skips no check");
        return Outcome::Failed(vec![Finding::new("scripts/install-test-tools.sh", 0, what)]);
    }
    Outcome::Skipped(why.to_owned())
}
