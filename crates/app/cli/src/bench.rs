//! `vere bench` and `vere sink`: commands of a separate program, `vere-bench`, which replaces the process.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use vere_process::failure::Failure;
use vere_process::outcome::Outcome;

/// Name of the benchmark program.
const PROGRAM: &str = "vere-bench";

/// Replaces the process by `vere-bench` with the given words.
///
/// # Errors
/// When the program is missing, or the kernel does not start the program. Success does not return.
pub(super) fn replace(words: impl IntoIterator<Item = OsString>) -> Result<Outcome, Failure> {
    let program = find()?;
    let error = Command::new(&program).arg0(PROGRAM).args(words).exec();
    Err(Failure::new(format!(
        "cannot start {}: {error}",
        program.display()
    )))
}

/// The path of the program, beside `vere` or in `PATH`.
///
/// # Errors
/// When the program is in neither place; the text has the way to get the program.
pub(super) fn find() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    among(&own, &path).ok_or_else(|| {
        let text = format!(
            "expected the program {PROGRAM} beside {} or in PATH; found none: `make install-bench` installs it, `cargo \
             build --package {PROGRAM}` builds it",
            own.display()
        );
        io::Error::new(ErrorKind::NotFound, text)
    })
}

fn among(own: &Path, path: &OsStr) -> Option<PathBuf> {
    let beside = own.with_file_name(PROGRAM);
    let others = std::env::split_paths(path).map(|folder| folder.join(PROGRAM));
    std::iter::once(beside)
        .chain(others)
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_this_one_comes_before_those_of_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let folder_of = |name: &str| folder.path().join(name);
        let path = std::env::join_paths([folder_of("empty"), folder_of("other")]).unwrap();
        let own = folder_of("bin").join("vere");
        for name in ["bin", "other"] {
            std::fs::create_dir(folder_of(name)).unwrap();
        }
        assert_eq!(among(&own, &path), None);
        let other = folder_of("other").join(PROGRAM);
        std::fs::write(&other, "").unwrap();
        assert_eq!(among(&own, &path), Some(other));
        let beside = folder_of("bin").join(PROGRAM);
        std::fs::write(&beside, "").unwrap();
        assert_eq!(among(&own, &path), Some(beside));
    }
}
