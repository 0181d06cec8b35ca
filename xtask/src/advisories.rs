//! Advisories about locked packages, without network: a dated snapshot of ids of RustSec, with the versions
//! that are not affected. Exceptions stand in `deny.toml` with reasons, also for cargo-deny, which reads the whole
//! database (`cargo deny check advisories`).
//!
//! A package locked later than the snapshot has no line: `cargo xtask advisories --write CLONE` makes a new snapshot
//! from a clone of RustSec's advisory-db.

mod snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use semver::Version;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

use snapshot::Snapshot;

/// The snapshot, relative to the root.
const SNAPSHOT: &str = "xtask/advisories.txt";
/// The exceptions.
const RULES: &str = "deny.toml";

/// Versions of each package of a registry.
type Locked = BTreeMap<String, BTreeSet<Version>>;

/// Compares the lock with the snapshot, and the exceptions with both.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let text = |file: &str| workspace.text(Path::new(file));
    let read = || -> Result<_, (&str, usize, String)> {
        let snapshot = Snapshot::read(&text(SNAPSHOT)).map_err(|(line, e)| (SNAPSHOT, line, e))?;
        let locked = locked(&text("Cargo.lock")).map_err(|e| ("Cargo.lock", 0, e))?;
        let excepted = excepted(&text(RULES)).map_err(|e| (RULES, 0, e))?;
        Ok((snapshot, locked, excepted))
    };
    let (snapshot, locked, excepted) = match read() {
        Ok(read) => read,
        Err((file, line, what)) => return Outcome::Failed(vec![Finding::new(file, line, what)]),
    };
    let findings = findings(&snapshot, &locked, &excepted);
    if !findings.is_empty() {
        return Outcome::Failed(findings);
    }
    Outcome::Told(format!(
        "{} advisories about locked packages as of {}, {} excepted with a reason",
        snapshot.advisories.len(),
        snapshot.taken,
        excepted.len()
    ))
}

/// Takes the snapshot anew from a clone of the database.
pub(crate) fn write(workspace: &Workspace, clone: &str) -> Outcome {
    let written = locked(&workspace.text(Path::new("Cargo.lock")))
        .and_then(|locked| Snapshot::take(Path::new(clone), locked.keys()))
        .and_then(|snapshot| {
            std::fs::write(workspace.root.join(SNAPSHOT), snapshot.to_string())
                .map_err(|error| error.to_string())
        });
    match written {
        Ok(()) => Outcome::Passed,
        Err(what) => Outcome::Failed(vec![Finding::new(SNAPSHOT, 0, what)]),
    }
}

fn findings(snapshot: &Snapshot, locked: &Locked, excepted: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for advisory in &snapshot.advisories {
        let versions = locked.get(&advisory.package).into_iter().flatten();
        for version in versions.filter(|version| !advisory.leaves_alone(version)) {
            needed.insert(advisory.id.clone());
            if !excepted.contains(&advisory.id) {
                let what = format!(
                    "{} {version}: {} (https://rustsec.org/advisories/{}); unaffected: {}; update it, or except the id \
                     in deny.toml with the reason",
                    advisory.package,
                    advisory.id,
                    advisory.id,
                    advisory.requirements()
                );
                findings.push(Finding::new("Cargo.lock", 0, what));
            }
        }
    }
    let unused = excepted.difference(&needed);
    findings.extend(unused.map(|id| {
        let what = format!("no locked package needs the exception from {id}: remove it");
        Finding::new(RULES, 0, what)
    }));
    findings
}

fn locked(lock: &str) -> Result<Locked, String> {
    let lock: toml::Table = lock.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let mut locked = Locked::new();
    for package in tables(lock.get("package")) {
        let text = |key: &str| package.get(key).and_then(toml::Value::as_str);
        if let (Some(name), Some(version), Some(_)) =
            (text("name"), text("version"), text("source"))
        {
            let version = version
                .parse()
                .map_err(|e| format!("{name} {version}: {e}"))?;
            locked.entry(name.to_owned()).or_default().insert(version);
        }
    }
    Ok(locked)
}

/// The ids that `deny.toml` excepts, each with a reason.
fn excepted(rules: &str) -> Result<BTreeSet<String>, String> {
    let rules: toml::Table = rules.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let ignored = rules
        .get("advisories")
        .and_then(|table| table.get("ignore"));
    let mut ids = BTreeSet::new();
    for entry in ignored
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |key: &str| entry.get(key).and_then(toml::Value::as_str);
        match (text("id"), text("reason")) {
            (Some(id), Some(reason)) if !reason.is_empty() => _ = ids.insert(id.to_owned()),
            _ => return Err(format!("an exception is {{ id, reason }}; found {entry}")),
        }
    }
    Ok(ids)
}

fn tables(value: Option<&toml::Value>) -> impl Iterator<Item = &toml::Table> {
    let list = value.and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_table)
}

#[cfg(test)]
mod tests;
