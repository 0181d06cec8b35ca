//! Peers with packages that exclude one another: unpacked into directories, not installed.
//!
//! `scripts/install-bench-peers.sh` makes a directory for each below [`DEFAULT`], or below the path in
//! `VERE_BENCH_PEERS`, with the package and all dependencies that the machine lacks.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::peer::PeerError;

/// Where the folders are.
const DEFAULT: &str = "/usr/local/lib/vere-bench-peers";

/// A package, unpacked.
#[derive(Debug)]
pub(super) struct Unpacked {
    root: PathBuf,
    /// `LD_LIBRARY_PATH=...`
    libraries: OsString,
}

impl Unpacked {
    /// The directory `folder`, if the directory contains `program`.
    pub(super) fn find(name: &'static str, folder: &str, program: &str) -> Result<Self, PeerError> {
        let base = std::env::var_os("VERE_BENCH_PEERS").unwrap_or_else(|| DEFAULT.into());
        let root = Path::new(&base).join(folder);
        let path = root.join(program);
        if !path.exists() {
            let path = path.display();
            let reason = format!("no {path} (run scripts/install-bench-peers.sh)");
            return Err(PeerError::unavailable(name, reason));
        }
        let libraries = library_folders(&root);
        Ok(Self { root, libraries })
    }

    /// A file or folder of the package.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The beginning of a command that runs `program` of the package with the package's libraries.
    pub(super) fn command(&self, program: &str) -> Vec<OsString> {
        vec![
            "/usr/bin/env".into(),
            self.libraries.clone(),
            self.path(program).into(),
        ]
    }
}

/// `usr/lib`, `lib` and their subdirectories, in the format of the loader.
fn library_folders(root: &Path) -> OsString {
    let mut text = OsString::from("LD_LIBRARY_PATH=");
    for base in ["usr/lib", "lib"] {
        let entries = fs::read_dir(root.join(base)).into_iter().flatten();
        text.push(root.join(base));
        text.push(":");
        let mut folders: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_dir())
            .collect();
        folders.sort();
        for folder in folders {
            text.push(folder);
            text.push(":");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_libraries_are_named_and_a_missing_program_is_said() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["usr/lib/b", "usr/lib/a", "lib/c"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("usr/lib/file"), "").unwrap();
        let own = root.path().display();
        assert_eq!(
            library_folders(root.path()).to_string_lossy(),
            format!(
                "LD_LIBRARY_PATH={own}/usr/lib:{own}/usr/lib/a:{own}/usr/lib/b:{own}/lib:{own}/lib/c:"
            )
        );
        let missing = Unpacked::find("x", "no-such-folder", "usr/bin/x").unwrap_err();
        assert!(matches!(missing, PeerError::Unavailable { name: "x", .. }));
    }
}
