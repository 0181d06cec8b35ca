//! A clone of a repository onto a mount, and its check.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::content;
use super::plan::Plan;
use super::results::{Results, at};
use super::system::System;
use crate::error::BenchError;
use crate::peer::{PeerError, folder};
use crate::process::guard;

pub(super) const CLONE: &str = "git clone";
pub(super) const CHECK: &str = "git fsck";
pub(super) const WHOLE: &str = "git: clone and fsck without errors";

/// Octets of a file of the repository.
const OCTETS: usize = 8 * 1024;

/// Files of a folder.
const FOLDER: usize = 20;

/// Clones and checks; a failure is a figure as well.
pub(super) fn measure(
    plan: &Plan,
    round_trip: u64,
    root: &Path,
    base: &Path,
    system: &mut dyn System,
    results: &mut Results,
) -> Result<(), BenchError> {
    let name = system.name();
    let origin = folder(base, "vere-bench-origin-").map_err(PeerError::from)?;
    let origin = origin.path();
    repository(origin, plan.cloned).map_err(BenchError::of("make a repository"))?;
    let clone = root.join("clone");
    let steps: [(&str, Vec<&std::ffi::OsStr>); 2] = [
        (
            CLONE,
            vec![
                "clone".as_ref(),
                "-q".as_ref(),
                "--no-local".as_ref(),
                origin.as_os_str(),
                clone.as_os_str(),
            ],
        ),
        (
            CHECK,
            vec![
                "-C".as_ref(),
                clone.as_os_str(),
                "fsck".as_ref(),
                "--full".as_ref(),
            ],
        ),
    ];
    let mut is_whole = true;
    for (what, arguments) in steps {
        let begun = Instant::now();
        match guard::said_by(git(origin).args(arguments)) {
            Ok(_) => results.time(name, at(round_trip, what), begun.elapsed()),
            Err(error) => {
                is_whole = false;
                let error = error.to_string();
                let line = error.trim_end().lines().last().unwrap_or_default();
                results.trouble(format!("{name}: {round_trip} ms: {what}: {line}"));
            }
        }
    }
    let figure = at(round_trip, WHOLE);
    results
        .figures
        .add(name, figure, f64::from(u8::from(is_whole)), "1 = yes");
    Ok(())
}

/// Git with no settings but those of the benchmark.
fn git(origin: &Path) -> Command {
    let mut git = Command::new("git");
    git.env("GIT_CONFIG_NOSYSTEM", "1");
    git.env("GIT_CONFIG_GLOBAL", origin.join(".git/bench"));
    git
}

fn repository(origin: &Path, files: usize) -> std::io::Result<()> {
    let settings = "[user]\n\tname = bench\n\temail = bench@bench.test\n[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n";
    fs::create_dir(origin.join(".git"))?;
    fs::write(origin.join(".git/bench"), settings)?;
    guard::said_by(git(origin).args(["init", "-q"]).arg(origin))?;
    for number in 0..files {
        let folder = origin.join(format!("d{}", number / FOLDER));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("f{number}")), content::octets(OCTETS))?;
    }
    guard::said_by(git(origin).arg("-C").arg(origin).args(["add", "."]))?;
    let commit = ["commit", "-q", "-m", "files"];
    guard::said_by(git(origin).arg("-C").arg(origin).args(commit))?;
    Ok(())
}
