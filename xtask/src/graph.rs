//! The resolved graph of all packages, printed by `cargo metadata`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::workspace::Workspace;

/// A package of ours or of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An SPDX expression; empty when the package names none.
    pub(crate) license: String,
    pub(crate) repository: String,
    pub(crate) authors: Vec<String>,
    /// The folder of the sources on this machine.
    pub(crate) folder: PathBuf,
    /// Whether the package comes from a registry.
    pub(crate) foreign: bool,
    /// Ids of the linked packages.
    pub(crate) links: Vec<String>,
}

impl Node {
    /// Name and version, as in the names of tarballs.
    pub(crate) fn title(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// Packages by id.
pub(crate) type Graph = BTreeMap<String, Node>;

/// Reads the graph.
///
/// # Errors
/// When cargo fails or prints something else than expected.
pub(crate) fn read(workspace: &Workspace) -> Result<Graph, String> {
    // Packages for other systems are locked too, and never compiled.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new("cargo")
        .args(["metadata", "--offline", "--locked", "--format-version", "1"])
        .args(["--filter-platform", &target])
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo metadata: {}", said.trim()));
    }
    let json: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(parsed(&json))
}

fn parsed(json: &Value) -> Graph {
    let mut graph: Graph = list(&json["packages"])
        .map(|package| (text(&package["id"]), node(package)))
        .collect();
    for resolved in list(&json["resolve"]["nodes"]) {
        let links = list(&resolved["deps"])
            .filter(|dependency| list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()))
            .map(|dependency| text(&dependency["pkg"]))
            .collect();
        if let Some(node) = graph.get_mut(&text(&resolved["id"])) {
            node.links = links;
        }
    }
    graph
}

fn node(package: &Value) -> Node {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    Node {
        name: text(&package["name"]),
        version: text(&package["version"]),
        license: text(&package["license"]),
        repository: text(&package["repository"]),
        authors: list(&package["authors"]).map(text).collect(),
        folder: manifest.parent().map(PathBuf::from).unwrap_or_default(),
        foreign: !package["source"].is_null(),
        links: Vec::new(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A graph of packages with their folders (none: from a registry) and links.
    pub(crate) fn made_of(packages: &[(&str, &str, &[&str])]) -> Graph {
        let node = |(name, folder, links): &(&str, &str, &[&str])| Node {
            name: (*name).to_owned(),
            version: "1.0.0".to_owned(),
            license: "MIT".to_owned(),
            repository: String::new(),
            authors: Vec::new(),
            folder: PathBuf::from(folder),
            foreign: folder.is_empty(),
            links: links.iter().map(|&link| link.to_owned()).collect(),
        };
        packages
            .iter()
            .map(|package| (package.0.to_owned(), node(package)))
            .collect()
    }

    #[test]
    fn dependencies_of_tests_and_build_scripts_are_no_links() {
        let json = serde_json::json!({
            "packages": [
                {"id": "a#1", "name": "a", "version": "1.0.0", "manifest_path": "/r/a/Cargo.toml"},
                {"id": "b#1", "name": "b", "version": "2.0.0", "manifest_path": "/c/b/Cargo.toml",
                 "source": "registry+x", "license": "MIT"},
            ],
            "resolve": {"nodes": [{"id": "a#1", "deps": [
                {"pkg": "b#1", "dep_kinds": [{"kind": "dev"}, {"kind": null}]},
                {"pkg": "c#1", "dep_kinds": [{"kind": "dev"}]},
                {"pkg": "d#1", "dep_kinds": [{"kind": "build"}]},
            ]}]},
        });
        let graph = parsed(&json);
        assert_eq!(graph["a#1"].links, ["b#1"]);
        assert!(graph["b#1"].foreign && !graph["a#1"].foreign);
        assert_eq!(graph["b#1"].license, "MIT");
    }
}
