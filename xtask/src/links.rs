//! Links from one page of the tree to another lead somewhere.

use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// Follows every relative link of every Markdown page.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut findings = Vec::new();
    for page in workspace.with_extension(&["md"]) {
        let folder = workspace.root.join(page.parent().unwrap_or(Path::new("")));
        for (index, line) in workspace.text(page).lines().enumerate() {
            for target in targets(line).filter(|target| !folder.join(target).exists()) {
                let what = format!("links to {target}, which does not exist");
                findings.push(Finding::new(page, index + 1, what));
            }
        }
    }
    findings.into()
}

/// The files named by `[text](file#part)` in a line, without external links.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, mark)| {
        let rest = line.get(at + mark.len()..)?;
        let file = rest.split([')', '#']).next()?;
        (!file.is_empty() && !file.contains(':')).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    #[test]
    fn a_dead_link_is_found_with_its_line() {
        let text = "[a](b.md#x) [c](https://example.org/)\n[d](../gone.md) [e](#here)\n";
        let (_folder, workspace) = made_of(&[("docs/a.md", text), ("docs/b.md", "")]);
        let Outcome::Failed(findings) = check(&workspace) else {
            panic!("passed")
        };
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            ["docs/a.md:2: links to ../gone.md, which does not exist"]
        );
    }
}
