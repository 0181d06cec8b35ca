//! Circles: files that need each other can only be read, tested and moved together.
//!
//! Three promises: no circle between crates, tests included; no circle between the top-level modules of a crate
//! if a module in the circle is a folder; and no circle of files larger than the table below allows.
//!
//! An import is a `use` declaration, or a path in the code (`crate::`, `super::`, `self::`, a child module, an
//! imported module), of production code. An import leads to the file that *defines* the item: `pub use` and
//! imports of a parent are followed, and are no imports themselves. `mod child;` is no import, and neither is the
//! import of a module before a path through the module names an item.
//!
//! A parent and its child are two ordinary files: a child that uses an item of its parent, and a parent that
//! calls the child, are a circle. A big type whose `impl` blocks lie in files of their own counts as a circle,
//! because every file may touch every field; a number in the table allows such a family. The remedy is a leaf
//! file for the plain types.
//!
//! Not seen: the output of macros, and types used without their names.

mod graph;
mod source;

use std::collections::BTreeSet;
use std::path::{Component, Path};

use crate::finding::{Finding, Outcome};
use crate::workspace::{Package, Workspace};
use graph::{Edges, Modules, circles};

/// The table below, for findings.
const TABLE: &str = "xtask/src/circles.rs";

/// The agreed circles of a crate.
struct Agreed {
    folder: &'static str,
    /// Files of the largest circle.
    files: usize,
    /// Top-level modules of the largest circle with a folder in it.
    modules: usize,
}

const fn agreed(folder: &'static str, files: usize, modules: usize) -> Agreed {
    Agreed {
        folder,
        files,
        modules,
    }
}

/// The present circles. A number may only fall; a crate outside the list has no circles.
const AGREED: &[Agreed] = &[
    agreed("bench", 3, 0),
    agreed("crates/app/cli", 2, 0),
    agreed("crates/base/ports", 2, 0),
    agreed("crates/check/script", 3, 0),
    agreed("crates/check/sim", 12, 0),
    agreed("crates/engine/owner", 0, 7),
    agreed("crates/engine/queue", 14, 0),
    agreed("crates/engine/search", 3, 0),
    agreed("crates/engine/store", 6, 5),
    agreed("crates/host/cluster", 8, 4),
    agreed("crates/host/disk", 8, 0),
    agreed("crates/host/net", 3, 0),
    agreed("crates/proto/imap", 11, 0),
    agreed("crates/proto/mime", 8, 7),
    agreed("crates/proto/sasl", 4, 0),
    agreed("crates/proto/smtp", 9, 2),
    agreed("crates/proto/spoolwire", 4, 0),
];

/// Compares every crate with the table.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    compare(workspace, AGREED)
}

/// Prints the circles of a crate, with the names behind each edge.
pub(crate) fn show(workspace: &Workspace, folder: &str) -> Outcome {
    let modules = Modules::read(workspace, Path::new(folder));
    let edges = modules.edges();
    let files = circles(&edges)
        .into_iter()
        .map(|circle| described(&circle, &edges, |file| short(file, folder)));
    let tops = top_level(&edges, folder);
    let tops = with_folders(&tops)
        .into_iter()
        .map(|circle| described(&circle, &tops, String::clone));
    Outcome::Told(files.chain(tops).collect())
}

fn compare(workspace: &Workspace, table: &[Agreed]) -> Outcome {
    let mut findings = between_crates(&workspace.packages);
    for package in &workspace.packages {
        let folder = package.folder.to_str().unwrap_or_default();
        let row = table.iter().find(|row| row.folder == folder);
        let (files_agreed, modules_agreed) = row.map_or((0, 0), |row| (row.files, row.modules));
        let modules = Modules::read(workspace, &package.folder);
        let edges = modules.edges();
        let largest = circles(&edges).into_iter().next().unwrap_or_default();
        let names: Vec<String> = largest.iter().map(|file| short(file, folder)).collect();
        findings.extend(finding(folder, "files", &names, files_agreed));
        let tops = top_level(&edges, folder);
        let largest = with_folders(&tops).into_iter().next().unwrap_or_default();
        findings.extend(finding(
            folder,
            "top-level modules",
            &largest,
            modules_agreed,
        ));
    }
    for row in table {
        let known = |package: &Package| package.folder == Path::new(row.folder);
        if !workspace.packages.iter().any(known) {
            let what = format!("names {}, which is no crate", row.folder);
            findings.push(Finding::new(TABLE, 0, what));
        }
    }
    findings.into()
}

/// The finding for a circle larger or smaller than agreed.
fn finding(
    folder: &str,
    of_what: &str,
    circle: &[impl AsRef<str>],
    agreed: usize,
) -> Option<Finding> {
    let found = circle.len();
    let names: Vec<&str> = circle.iter().map(AsRef::as_ref).collect();
    let names = names.join(", ");
    if found > agreed {
        let what = format!(
            "expected no circle of more than {agreed} {of_what}; found one of {found}: {names}. \
             `cargo xtask circles --show {folder}` prints the imports that make it"
        );
        return Some(Finding::new(folder, 0, what));
    }
    (found < agreed).then(|| {
        let what = format!(
            "the largest circle of {of_what} of {folder} has fallen from {agreed} to {found}: record {found}"
        );
        Finding::new(TABLE, 0, what)
    })
}

/// Two halves of one protocol, each of which has the other at its far end in tests.
const TESTED_TOGETHER: [&str; 2] = ["vere-owner", "vere-spool"];

/// Cargo refuses circles of ordinary dependencies; this check also refuses circles of test dependencies.
fn between_crates(packages: &[Package]) -> Vec<Finding> {
    let own: BTreeSet<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let edges: Edges<&str> = packages
        .iter()
        .map(|package| {
            let together = |name: &str| TESTED_TOGETHER.contains(&name);
            let others = package.dependencies.iter();
            let others = others
                .filter(|other| !(other.dev && together(&other.name) && together(&package.name)));
            let others = others.map(|other| other.name.as_str());
            let others = others.filter(|other| own.contains(other) && *other != package.name);
            let others = others.map(|other| (other, other.to_owned())).collect();
            (package.name.as_str(), others)
        })
        .collect();
    circles(&edges)
        .into_iter()
        .map(|circle| {
            let what = format!("crates depend on each other: {}", circle.join(", "));
            Finding::new("Cargo.toml", 0, what)
        })
        .collect()
}

/// The graph of a crate's top-level modules: a folder is one node (with a `/`), a file directly in `src` another.
fn top_level(edges: &Edges<&Path>, folder: &str) -> Edges<String> {
    let folders: BTreeSet<String> = edges
        .keys()
        .filter_map(|file| folder_in(file, folder))
        .collect();
    let top = |file: &Path| {
        folder_in(file, folder).unwrap_or_else(|| {
            let name = short(file, folder);
            let beside = format!("{}/", name.trim_end_matches(".rs"));
            if folders.contains(&beside) {
                beside
            } else {
                name
            }
        })
    };
    let mut tops = Edges::<String>::new();
    for (from, others) in edges {
        for (to, name) in others {
            let (from_top, to_top) = (top(from), top(to));
            if from_top != to_top {
                let what = format!("{} > {} ({name})", short(from, folder), short(to, folder));
                let said = tops.entry(from_top).or_default().entry(to_top).or_default();
                *said = if said.is_empty() {
                    what
                } else {
                    format!("{said}; {what}")
                };
            }
        }
    }
    tops
}

/// The top-level folder of a file.
fn folder_in(file: &Path, folder: &str) -> Option<String> {
    let mut parts = file.strip_prefix(folder).ok()?.components().skip(1);
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(first)), Some(_)) => Some(format!("{}/", first.to_str()?)),
        _ => None,
    }
}

/// The circles with at least one folder.
fn with_folders(tops: &Edges<String>) -> Vec<Vec<String>> {
    let mut found = circles(tops);
    found.retain(|circle| circle.iter().any(|name| name.ends_with('/')));
    found
}

/// The path of a file within the crate.
fn short(file: &Path, folder: &str) -> String {
    let file = file.strip_prefix(folder).unwrap_or(file);
    let file = file.strip_prefix("src").unwrap_or(file);
    file.display().to_string()
}

/// A circle and its edges, a line each.
fn described<N: Ord + Clone>(
    circle: &[N],
    edges: &Edges<N>,
    said: impl Fn(&N) -> String,
) -> String {
    let mut text = format!("{} in a circle:\n", circle.len());
    for from in circle {
        for (to, name) in edges.get(from).into_iter().flatten() {
            if circle.contains(to) {
                text += &format!("   {} > {}: {name}\n", said(from), said(to));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::{made_of, package};

    /// The findings for a crate named `c`.
    fn findings(files: &[(&str, &str)], table: &[Agreed]) -> Vec<String> {
        let (_folder, mut workspace) = made_of(files);
        workspace.packages = vec![package("c", "c", &[])];
        match compare(&workspace, table) {
            Outcome::Failed(findings) => findings.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    /// `a/one.rs` and `b.rs` need each other.
    const CIRCLE: &[(&str, &str)] = &[
        ("c/src/lib.rs", "mod a; mod b;"),
        ("c/src/a/mod.rs", "pub mod one;"),
        ("c/src/a/one.rs", "use crate::b::B; pub struct A;"),
        ("c/src/b.rs", "use crate::a::one::A; pub struct B;"),
    ];

    #[test]
    fn a_circle_that_is_not_agreed_to_is_found() {
        let found = findings(CIRCLE, &[]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("no circle of more than 0 files; found one of 2: a/one.rs, b.rs")
        );
        assert!(found[1].contains("0 top-level modules; found one of 2: a/, b.rs"));
    }

    #[test]
    fn what_is_agreed_to_may_stay_and_must_be_recorded_when_it_falls() {
        assert_eq!(findings(CIRCLE, &[agreed("c", 2, 2)]), Vec::<String>::new());
        let found = findings(CIRCLE, &[agreed("c", 3, 2)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].ends_with("has fallen from 3 to 2: record 2"),
            "{found:?}"
        );
        assert_eq!(
            findings(CIRCLE, &[agreed("c", 2, 2), agreed("gone", 0, 0)]).len(),
            1
        );
    }

    #[test]
    fn files_beside_each_other_are_no_circle_of_folders() {
        let files = [
            ("c/src/lib.rs", "mod a; mod b;"),
            ("c/src/a.rs", "use crate::b::B; pub struct A;"),
            ("c/src/b.rs", "use crate::a::A; pub struct B;"),
        ];
        assert_eq!(findings(&files, &[agreed("c", 2, 0)]), Vec::<String>::new());
    }

    #[test]
    fn crates_must_not_depend_on_each_other_even_in_tests() {
        let mut packages = vec![package("a", "a", &["b"]), package("b", "b", &["a"])];
        packages[1].dependencies[0].dev = true;
        let found = between_crates(&packages);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.ends_with(": a, b"), "{found:?}");
    }
}
