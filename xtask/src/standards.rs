//! Every RFC cited in code or documentation stands in `docs/standards.md`, so that the list of
//! implemented standards stays complete.

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The list, relative to the root.
const LIST: &str = "docs/standards.md";

/// Compares the citations with the list.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let listed: BTreeSet<u32> = workspace
        .text(Path::new(LIST))
        .lines()
        .flat_map(cited)
        .collect();
    let mut findings = Vec::new();
    for file in workspace.with_extension(&["rs", "md", "script", "toml"]) {
        if file == Path::new(LIST) {
            continue;
        }
        for (index, line) in workspace.text(file).lines().enumerate() {
            for number in cited(line).filter(|number| !listed.contains(number)) {
                let what = format!("RFC {number} is cited here but not listed in {LIST}");
                findings.push(Finding::new(file, index + 1, what));
            }
        }
    }
    findings.into()
}

/// The numbers after "RFC " in a line.
fn cited(line: &str) -> impl Iterator<Item = u32> {
    let mark = concat!("RF", "C ");
    line.match_indices(mark).filter_map(move |(at, _)| {
        let rest = line.get(at + mark.len()..)?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest.get(..end)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    #[test]
    fn numbers_are_found() {
        let line = concat!(
            "as RF",
            "C 5321 section 4.1 and RF",
            "C 6531; RF",
            "C editor"
        );
        assert_eq!(cited(line).collect::<Vec<_>>(), [5321, 6531]);
    }

    #[test]
    fn an_unlisted_number_is_named_with_its_line() {
        let code = concat!("//! x\n// RF", "C 9999 section 1\n");
        let list = concat!("| RF", "C 5321 |\n");
        let (_folder, workspace) = made_of(&[("a.rs", code), (LIST, list)]);
        let Outcome::Failed(findings) = check(&workspace) else {
            panic!("passed")
        };
        assert!(findings[0].to_string().starts_with("a.rs:2: "));
    }
}
