//! The import graph of one crate, and the circles in a graph.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};

use super::source::{self, Path, Source};
use crate::workspace::Workspace;

/// The most `use` declarations followed in a row for a name.
const STEPS_MAX: usize = 32;

/// The edges of each node, with a name as evidence.
pub(super) type Edges<N> = BTreeMap<N, BTreeMap<N, String>>;

/// A file of production code.
#[derive(Debug)]
struct Module {
    /// Relative to the root of the workspace.
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    source: Source,
}

/// The files of a crate that the root reaches by `mod` outside tests.
#[derive(Debug, Default)]
pub(super) struct Modules(Vec<Module>);

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// To a module itself.
    Module(usize),
    /// An item defined in this file.
    Item(usize),
    /// Out of the crate.
    Outside,
}

impl Modules {
    /// Reads the crate in a folder relative to the root of the workspace.
    pub(super) fn read(workspace: &Workspace, folder: &FilePath) -> Self {
        let mut modules = Self::default();
        for root in ["src/lib.rs", "src/main.rs"] {
            modules.add(workspace, folder.join(root), None);
        }
        modules
    }

    fn add(
        &mut self,
        workspace: &Workspace,
        file: PathBuf,
        parent: Option<usize>,
    ) -> Option<usize> {
        if workspace.files.binary_search(&file).is_err() {
            return None;
        }
        let source = source::read(&workspace.text(&file));
        let names = source.children.clone();
        let index = self.0.len();
        let below = folder_of(&file, parent.is_none());
        self.0.push(Module {
            file,
            parent,
            children: BTreeMap::new(),
            source,
        });
        for name in names {
            let places = [
                below.join(format!("{name}.rs")),
                below.join(&name).join("mod.rs"),
            ];
            for place in places {
                if let Some(child) = self.add(workspace, place, Some(index)) {
                    self.0[index].children.insert(name.clone(), child);
                }
            }
        }
        Some(index)
    }

    /// The edges between the files.
    pub(super) fn edges(&self) -> Edges<&FilePath> {
        let mut edges = Edges::new();
        for (index, module) in self.0.iter().enumerate() {
            let found = edges.entry(module.file.as_path()).or_default();
            for path in self.needed(index) {
                if let Target::Item(other) = self.resolve(index, path, 0)
                    && other != index
                {
                    let name = path.last().cloned().unwrap_or_default();
                    found.insert(self.0[other].file.as_path(), name);
                }
            }
        }
        edges
    }

    /// Paths whose items a module needs: its own imports, and the names in its code.
    fn needed(&self, index: usize) -> impl Iterator<Item = &Path> {
        let source = &self.0[index].source;
        let own = source.imports.values().filter(|import| !import.passed_on);
        own.map(|import| &import.path).chain(&source.paths)
    }

    /// The target of a path in a module.
    fn resolve(&self, from: usize, path: &[String], steps: usize) -> Target {
        let module = &self.0[from];
        let Some((first, rest)) = path.split_first() else {
            return Target::Module(from);
        };
        match first.as_str() {
            "crate" => self.walk(self.root_of(from), rest, steps),
            "self" => self.walk(from, rest, steps),
            "super" => match module.parent {
                Some(parent) => self.resolve_above(parent, rest, steps),
                None => Target::Outside,
            },
            name if self.names(from, name) => self.walk(from, path, steps),
            _ => Target::Outside,
        }
    }

    /// As [`Self::resolve`] after `super`, which may be followed by another.
    fn resolve_above(&self, at: usize, rest: &[String], steps: usize) -> Target {
        match rest.first().map(String::as_str) {
            Some("super") => self.resolve(at, rest, steps),
            _ => self.walk(at, rest, steps),
        }
    }

    fn root_of(&self, mut at: usize) -> usize {
        while let Some(parent) = self.0[at].parent {
            at = parent;
        }
        at
    }

    /// Whether a module has a child, an import or an item of this name.
    fn names(&self, at: usize, name: &str) -> bool {
        let module = &self.0[at];
        module.children.contains_key(name)
            || module.source.imports.contains_key(name)
            || module.source.defined.contains(name)
    }

    /// Goes from a module to children, through imports, to the file that defines an item.
    fn walk(&self, at: usize, path: &[String], steps: usize) -> Target {
        let module = &self.0[at];
        let Some((name, rest)) = path.split_first() else {
            return Target::Module(at);
        };
        if steps > STEPS_MAX {
            return Target::Outside;
        }
        // A function and a module may have the same name.
        if rest.is_empty() && module.source.defined.contains(name) {
            return Target::Item(at);
        }
        if let Some(child) = module.children.get(name) {
            return self.walk(*child, rest, steps);
        }
        if module.source.defined.contains(name) {
            return Target::Item(at);
        }
        if let Some(import) = module.source.imports.get(name) {
            return match self.resolve(at, &import.path, steps + 1) {
                Target::Module(other) => self.walk(other, rest, steps + 1),
                target => target,
            };
        }
        for glob in &module.source.globs {
            if let Target::Module(other) = self.resolve(at, glob, steps + 1)
                && other != at
                && self.names(other, name)
            {
                return self.walk(other, path, steps + 1);
            }
        }
        Target::Item(at)
    }
}

/// The folder of a file's child modules.
fn folder_of(file: &FilePath, is_root: bool) -> PathBuf {
    let folder = file.parent().unwrap_or(FilePath::new("")).to_owned();
    match file.file_stem() {
        Some(stem) if !is_root && stem != "mod" => folder.join(stem),
        _ => folder,
    }
}

/// The circles of a graph (its strongly connected components of two nodes and more), the largest first.
pub(super) fn circles<N: Ord + Clone>(edges: &Edges<N>) -> Vec<Vec<N>> {
    let reached: BTreeMap<N, BTreeSet<N>> = edges
        .keys()
        .map(|node| (node.clone(), reached_from(node, edges)))
        .collect();
    let mut circles: Vec<Vec<N>> = Vec::new();
    let mut done = BTreeSet::new();
    for (node, others) in &reached {
        let back = |other: &&N| {
            reached
                .get(other)
                .is_some_and(|theirs| theirs.contains(node))
        };
        let circle: Vec<N> = others.iter().filter(back).cloned().collect();
        if circle.len() > 1 && !done.contains(node) {
            done.extend(circle.iter().cloned());
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The nodes reachable from a node in one step or more.
fn reached_from<N: Ord + Clone>(node: &N, edges: &Edges<N>) -> BTreeSet<N> {
    let mut reached = BTreeSet::new();
    let mut next = vec![node];
    while let Some(at) = next.pop() {
        for other in edges.get(at).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(other.clone()) {
                next.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    /// The edges of a crate made of these files, as `from>to`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, workspace) = made_of(files);
        let modules = Modules::read(&workspace, FilePath::new(""));
        let name = |file: &FilePath| file.strip_prefix("src").unwrap().display().to_string();
        modules
            .edges()
            .iter()
            .flat_map(|(from, to)| to.keys().map(|to| format!("{}>{}", name(from), name(to))))
            .collect()
    }

    #[test]
    fn a_declaration_of_a_child_is_no_import() {
        let files = [
            ("src/lib.rs", "mod a; pub use a::A;"),
            ("src/a.rs", "pub struct A;"),
        ];
        assert_eq!(edges(&files), Vec::<String>::new());
    }

    #[test]
    fn names_passed_on_are_followed_to_the_file_that_defines_them() {
        let files = [
            ("src/lib.rs", "mod a; mod b; pub use a::B as C;"),
            ("src/a/mod.rs", "mod inner; pub use inner::B;"),
            ("src/a/inner.rs", "pub struct B;"),
            ("src/b.rs", "use crate::C; use crate::a; fn f(b: a::B) {}"),
        ];
        assert_eq!(edges(&files), ["b.rs>a/inner.rs"]);
    }

    #[test]
    fn parent_and_child_that_use_each_other_are_a_circle() {
        let files = [
            ("src/lib.rs", "mod a;"),
            ("src/a.rs", "mod b; struct S; fn f() { b::g() }"),
            ("src/a/b.rs", "use super::S; fn g() {}"),
        ];
        assert_eq!(edges(&files), ["a/b.rs>a.rs", "a.rs>a/b.rs"]);
    }

    #[test]
    fn a_private_import_of_the_parent_is_followed_too() {
        let files = [
            ("src/lib.rs", "mod a; mod clock;"),
            (
                "src/a.rs",
                "mod b; use crate::clock; fn f() { clock::now() }",
            ),
            ("src/a/b.rs", "use super::clock; fn g() { clock::now() }"),
            ("src/clock.rs", "pub fn now() {}"),
        ];
        assert_eq!(edges(&files), ["a/b.rs>clock.rs", "a.rs>clock.rs"]);
    }

    #[test]
    fn paths_globs_and_traits_count_and_tests_do_not() {
        let files = [
            ("src/lib.rs", "mod a; mod b; mod c; #[cfg(test)] mod tests;"),
            (
                "src/a.rs",
                "fn f() { super::b::g(); } #[cfg(test)] mod tests { use crate::c::T; }",
            ),
            (
                "src/b.rs",
                "use crate::c::*; use crate::c::T as _; pub fn g() {}",
            ),
            ("src/c.rs", "pub trait T {}"),
            ("src/tests.rs", "use crate::a::f;"),
        ];
        assert_eq!(edges(&files), ["a.rs>b.rs", "b.rs>c.rs"]);
    }

    #[test]
    fn circles_are_found_and_chains_are_not() {
        let edge = |to: &[u8]| to.iter().map(|to| (*to, String::new())).collect();
        let graph: Edges<u8> = [
            (1, edge(&[2])),
            (2, edge(&[3])),
            (3, edge(&[1, 4])),
            (4, edge(&[5])),
            (5, edge(&[4, 5])),
            (6, edge(&[1])),
        ]
        .into();
        assert_eq!(circles(&graph), [vec![1, 2, 3], vec![4, 5]]);
    }
}
