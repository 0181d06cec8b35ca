//! The contents of a package by other authors: a bill of materials in CycloneDX 1.6, and the notices that licences demand.
//!
//! `cargo xtask sbom PACKAGE FOLDER VERSION` writes both files for a program of the workspace. Packages that
//! the program links on this machine count, and C libraries in their sources; packages of build scripts, macros and
//! tests do not.

mod bill;
mod notices;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::finding::{Finding, Outcome};
use crate::graph::{self, Node};
use crate::workspace::Workspace;

/// Writes `PACKAGE.cdx.json` and `THIRD-PARTY-LICENSES`.
pub(crate) fn write(workspace: &Workspace, package: &str, folder: &str, version: &str) -> Outcome {
    match written(workspace, package, Path::new(folder), version) {
        Ok(count) => Outcome::Told(format!(
            "{count} packages of others are linked into {package}"
        )),
        Err(what) => Outcome::Failed(vec![Finding::new(folder, 0, what)]),
    }
}

fn written(
    workspace: &Workspace,
    package: &str,
    folder: &Path,
    version: &str,
) -> Result<usize, String> {
    let linked = linked(workspace, package)?;
    let sums = checksums(&workspace.text(Path::new("Cargo.lock")))?;
    let bill = bill::made(package, version, &linked, &sums);
    let bill = serde_json::to_string_pretty(&bill).map_err(|error| error.to_string())?;
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    file(&format!("{package}.cdx.json"), &(bill + "\n"))?;
    file("THIRD-PARTY-LICENSES", &notices::made(package, &linked)?)?;
    Ok(linked.len())
}

/// The linked packages of registries, by name and version.
fn linked(workspace: &Workspace, package: &str) -> Result<BTreeMap<String, Node>, String> {
    let graph = graph::read(workspace)?;
    let built = built(workspace, package)?;
    let mut linked = BTreeMap::new();
    for name in built {
        let mut named = graph
            .values()
            .filter(|node| node.foreign && node.title() == name);
        let Some(node) = named.next() else { continue };
        let mut node = node.clone();
        node.links = node
            .links
            .iter()
            .filter_map(|id| graph.get(id))
            .map(Node::title)
            .collect();
        linked.insert(name, node);
    }
    for name in linked.keys().cloned().collect::<Vec<_>>() {
        let known: BTreeSet<String> = linked.keys().cloned().collect();
        if let Some(node) = linked.get_mut(&name) {
            node.links.retain(|link| known.contains(link));
        }
    }
    if linked.is_empty() {
        return Err(format!(
            "{package} links nothing: expected the name of a program"
        ));
    }
    Ok(linked)
}

/// The titles of all packages that cargo builds into a program.
fn built(workspace: &Workspace, package: &str) -> Result<BTreeSet<String>, String> {
    let output = Command::new("cargo")
        .args(["tree", "--offline", "--locked", "--package", package])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo tree: {}", said.trim()));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().filter_map(of_tree).collect())
}

/// `pool v1.2.0 (*)` is `pool-1.2.0`.
fn of_tree(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some(format!("{name}-{version}"))
}

/// The SHA-256 of each package of a registry, by title.
fn checksums(lock: &str) -> Result<BTreeMap<String, String>, String> {
    let lock: toml::Table = lock.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let sum = |package: &toml::Value| {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        let title = format!("{}-{}", text("name")?, text("version")?);
        Some((title, text("checksum")?.to_owned()))
    };
    Ok(packages.into_iter().flatten().filter_map(sum).collect())
}

#[cfg(test)]
mod tests;
