//! Texts forbidden in the tree: paths of a developer's machine, conflict marks of a merge.

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The texts, each in two parts so that this file is no finding itself, with the reasons.
const FORBIDDEN: &[([&str; 2], &str)] = &[
    (["/wo", "rk/main"], "a path of one machine"),
    (["/wo", "rk/shared"], "a path of one machine"),
    (["/tmp/tar", "get-"], "a path of one machine"),
    (["/ro", "ot/.cargo"], "a path of one machine"),
    (["<<<<", "<<< "], "a mark of a merge"),
    ([">>>>", ">>> "], "a mark of a merge"),
];

/// Looks through every text file.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut findings = Vec::new();
    for file in &workspace.files {
        for (index, line) in workspace.text(file).lines().enumerate() {
            for (parts, why) in FORBIDDEN {
                let text = parts.concat();
                if line.contains(&text) {
                    findings.push(Finding::new(file, index + 1, format!("\"{text}\": {why}")));
                }
            }
        }
    }
    findings.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    #[test]
    fn a_machine_path_is_found() {
        let text = ["see\n/wo", "rk/main/x\n"].concat();
        let (_folder, workspace) = made_of(&[("docs/a.md", &text), ("b.md", "fine\n")]);
        let Outcome::Failed(findings) = check(&workspace) else {
            panic!("passed")
        };
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }
}
