//! What the checks look at: the files under version control and the graph of crates.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Why the workspace cannot be looked at.
#[derive(Debug)]
pub(crate) enum WorkspaceError {
    /// A program could not be started or a file not be read.
    Io(&'static str, io::Error),
    /// A program failed, with this output.
    Program(&'static str, String),
    /// `cargo metadata` printed something else than expected.
    Metadata(String),
}

impl fmt::Display for WorkspaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Program(what, said) => write!(f, "{what} failed: {said}"),
            Self::Metadata(what) => write!(f, "cargo metadata: {what}"),
        }
    }
}

impl std::error::Error for WorkspaceError {}

/// A dependency as stated in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Only for tests.
    pub(crate) dev: bool,
}

/// A member of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Folder relative to the root, for example `crates/base/units`.
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
}

/// The workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Its root folder.
    pub(crate) root: PathBuf,
    /// Its members.
    pub(crate) packages: Vec<Package>,
    /// Files under version control or about to be, relative to the root, sorted.
    pub(crate) files: Vec<PathBuf>,
}

impl Workspace {
    /// Finds the workspace of this program.
    pub(crate) fn find() -> Result<Self, WorkspaceError> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap_or(Path::new("/"));
        let metadata = output(
            "cargo metadata",
            Command::new("cargo")
                .args([
                    "metadata",
                    "--offline",
                    "--no-deps",
                    "--format-version",
                    "1",
                ])
                .current_dir(root),
        )?;
        // Lists untracked files too, so that a check fails before the commit and not after.
        let listed = output(
            "git ls-files",
            Command::new("git")
                .args([
                    "ls-files",
                    "--cached",
                    "--others",
                    "--exclude-standard",
                    "-z",
                ])
                .current_dir(root),
        )?;
        let mut files: Vec<PathBuf> = listed
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .filter(|name| root.join(name).is_file())
            .collect();
        files.sort();
        files.dedup();
        let packages = packages(&metadata, root)?;
        Ok(Self {
            root: root.to_owned(),
            packages,
            files,
        })
    }

    /// The files with one of the given extensions.
    pub(crate) fn with_extension<'a>(
        &'a self,
        extensions: &'a [&str],
    ) -> impl Iterator<Item = &'a Path> {
        self.files.iter().map(PathBuf::as_path).filter(move |file| {
            let extension = file.extension().and_then(|own| own.to_str());
            extension.is_some_and(|own| extensions.contains(&own))
        })
    }

    /// The text of a file; empty when it is absent or not text.
    pub(crate) fn text(&self, file: &Path) -> String {
        fs::read_to_string(self.root.join(file)).unwrap_or_default()
    }
}

fn output(what: &'static str, command: &mut Command) -> Result<String, WorkspaceError> {
    let output = command
        .output()
        .map_err(|error| WorkspaceError::Io(what, error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(WorkspaceError::Program(what, said));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the members from the JSON of `cargo metadata`.
fn packages(metadata: &str, root: &Path) -> Result<Vec<Package>, WorkspaceError> {
    let wrong = |what: &str| WorkspaceError::Metadata(what.to_owned());
    let json: Value = serde_json::from_str(metadata)
        .map_err(|error| WorkspaceError::Metadata(error.to_string()))?;
    let list = json["packages"]
        .as_array()
        .ok_or_else(|| wrong("no packages"))?;
    list.iter()
        .map(|package| {
            let manifest = package["manifest_path"]
                .as_str()
                .ok_or_else(|| wrong("no path"))?;
            let folder = Path::new(manifest).parent().unwrap_or(root);
            Ok(Package {
                name: package["name"]
                    .as_str()
                    .ok_or_else(|| wrong("no name"))?
                    .to_owned(),
                folder: folder.strip_prefix(root).unwrap_or(folder).to_owned(),
                dependencies: dependencies(package),
            })
        })
        .collect()
}

fn dependencies(package: &Value) -> Vec<Dependency> {
    let list = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .filter_map(|dependency| {
            Some(Dependency {
                name: dependency["name"].as_str()?.to_owned(),
                dev: dependency["kind"].as_str() == Some("dev"),
            })
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A workspace of the given files, in a folder that lives as long as the first value.
    pub(crate) fn made_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut files: Vec<PathBuf> = files.iter().map(|(name, _)| PathBuf::from(name)).collect();
        files.sort();
        let workspace = Workspace {
            root: folder.path().to_owned(),
            packages: Vec::new(),
            files,
        };
        (folder, workspace)
    }

    /// A package with ordinary dependencies.
    pub(crate) fn package(folder: &str, name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|name| Dependency {
                name: (*name).to_owned(),
                dev: false,
            })
            .collect();
        Package {
            name: name.to_owned(),
            folder: folder.into(),
            dependencies,
        }
    }

    #[test]
    fn metadata_is_read() {
        let json = r#"{"packages": [{"name": "a", "manifest_path": "/r/crates/base/a/Cargo.toml",
            "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]}"#;
        let packages = packages(json, Path::new("/r")).unwrap();
        let mut expected = package("crates/base/a", "a", &["b", "c"]);
        expected.dependencies[1].dev = true;
        assert_eq!(packages, [expected]);
    }

    #[test]
    fn the_real_workspace_is_found() {
        let workspace = Workspace::find().unwrap();
        assert!(
            workspace
                .packages
                .iter()
                .any(|package| package.name == "xtask")
        );
        assert!(
            workspace
                .files
                .contains(&PathBuf::from("xtask/src/workspace.rs"))
        );
    }
}
