//! Inner layers reach no runtime and no socket through a library either: `layers.rs` reads manifests, the check here
//! follows the resolved graph. A list of all crates that may use the runtime is not needed.

use std::collections::{BTreeMap, VecDeque};

use crate::finding::{Finding, Outcome};
use crate::graph::{self, Graph};
use crate::layers::{OUTSIDE, touches_outside};
use crate::workspace::Workspace;

/// Follows the links of every inner crate.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let graph = match graph::read(workspace) {
        Ok(graph) => graph,
        Err(error) => return Outcome::Failed(vec![Finding::new("Cargo.lock", 0, error)]),
    };
    findings(&graph, workspace).into()
}

fn findings(graph: &Graph, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, node) in graph.iter().filter(|(_, node)| !node.foreign) {
        let folder = node.folder.strip_prefix(&workspace.root);
        let folder = folder.unwrap_or(&node.folder);
        if touches_outside(folder) {
            continue;
        }
        for way in ways(graph, id) {
            let what = format!("reaches {way}: only hosts touch the outside");
            findings.push(Finding::new(folder.join("Cargo.toml"), 0, what));
        }
    }
    findings
}

/// The shortest way from a package to each library of the outside, as names.
fn ways(graph: &Graph, from: &str) -> Vec<String> {
    let mut before: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut next = VecDeque::from([from]);
    let mut ways = Vec::new();
    while let Some(id) = next.pop_front() {
        let Some((id, node)) = graph.get_key_value(id) else {
            continue;
        };
        if node.foreign && OUTSIDE.contains(&node.name.as_str()) {
            ways.push(way(graph, &before, id));
            continue;
        }
        for link in &node.links {
            if !before.contains_key(link.as_str()) {
                before.insert(link, Some(id));
                next.push_back(link);
            }
        }
    }
    ways
}

fn way(graph: &Graph, before: &BTreeMap<&str, Option<&str>>, to: &str) -> String {
    let steps = std::iter::successors(Some(to), |id| before.get(id).copied().flatten());
    let names: Vec<&str> = steps
        .filter_map(|id| graph.get(id))
        .map(|node| node.name.as_str())
        .collect();
    names.join(" <- ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::made_of;
    use crate::workspace::tests as workspaces;

    #[test]
    fn a_runtime_behind_somebody_elses_library_is_found_with_the_way() {
        let (_folder, workspace) = workspaces::made_of(&[]);
        let graph = made_of(&[
            ("vere-queue", "crates/engine/queue", &["pool", "vere-units"]),
            ("vere-units", "crates/base/units", &[]),
            ("vere-net", "crates/host/net", &["tokio"]),
            ("pool", "", &["tokio"]),
            ("tokio", "", &["mio"]),
            ("mio", "", &[]),
        ]);
        let found: Vec<String> = findings(&graph, &workspace)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "crates/engine/queue/Cargo.toml: reaches tokio <- pool <- vere-queue: only hosts touch the outside"
            ]
        );
    }
}
