//! Links from one page of the tree to another exist, headings included; the book has every page of `docs`.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// The folder of the book, and the list of pages.
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Follows every relative link of every Markdown page, and compares the pages of the book with the list.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut findings = Vec::new();
    for page in workspace.with_extension(&["md"]) {
        for (index, line) in workspace.text(page).lines().enumerate() {
            let faults = targets(line).filter_map(|target| fault(workspace, page, target));
            findings.extend(faults.map(|what| Finding::new(page, index + 1, what)));
        }
    }
    findings.extend(unlisted(workspace));
    findings.into()
}

/// The reason why a link leads nowhere.
fn fault(workspace: &Workspace, page: &Path, target: &str) -> Option<String> {
    let (file, part) = target.split_once('#').unwrap_or((target, ""));
    let aim = match file.is_empty() {
        true => page.to_owned(),
        false => normal(&page.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !workspace.root.join(&aim).exists() {
        return Some(format!("links to {file}, which does not exist"));
    }
    let has_headings = aim.extension().is_some_and(|extension| extension == "md");
    let is_missing =
        has_headings && !part.is_empty() && !headings(&workspace.text(&aim)).contains(part);
    is_missing.then(|| format!("links to {target}, a heading that does not exist"))
}

/// Pages of the book without a line in the list.
fn unlisted(workspace: &Workspace) -> Vec<Finding> {
    let summary = workspace.text(Path::new(SUMMARY));
    if summary.is_empty() {
        return Vec::new();
    }
    let listed: BTreeSet<PathBuf> = summary
        .lines()
        .flat_map(targets)
        .map(|target| normal(&Path::new(BOOK).join(target)))
        .collect();
    workspace
        .with_extension(&["md"])
        .filter(|page| page.starts_with(BOOK) && *page != Path::new(SUMMARY))
        .filter(|page| !listed.contains(*page))
        .map(|page| Finding::new(page, 0, format!("is not in {SUMMARY}")))
        .collect()
}

/// The anchors of a page's headings; a repeated heading has a number.
fn headings(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut is_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let text = line.trim_start_matches('#');
        if is_code || text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let name = slug(text.trim());
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

fn slug(heading: &str) -> String {
    let heading = heading.to_lowercase();
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.collect()
}

/// A path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The links `[text](file#part)` in a line, without external links.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, mark)| {
        let rest = line.get(at + mark.len()..)?;
        let target = rest.split(')').next()?;
        (!target.is_empty() && !target.contains(':')).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let (_folder, workspace) = made_of(files);
        match check(&workspace) {
            Outcome::Failed(findings) => findings.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_dead_link_is_found_with_its_line() {
        let text = "[a](b.md#x-y) [c](https://example.org/)\n[d](../gone.md) [e](#here) [f](b.md#z)\n## Here\n";
        let found = faults(&[("docs/a.md", text), ("docs/b.md", "# X `Y`\n")]);
        let expected = [
            "docs/a.md:2: links to ../gone.md, which does not exist",
            "docs/a.md:2: links to b.md#z, a heading that does not exist",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_that_the_book_lacks_is_found() {
        let files = [
            ("docs/SUMMARY.md", "- [A](a.md)\n- [B](guides/b.md)\n"),
            ("docs/a.md", ""),
            ("docs/guides/b.md", ""),
            ("docs/guides/c.md", ""),
            ("other.md", ""),
        ];
        assert_eq!(
            faults(&files),
            ["docs/guides/c.md: is not in docs/SUMMARY.md"]
        );
    }

    #[test]
    fn headings_have_the_names_that_readers_make() {
        let names =
            headings("# The `[dkim]` (keys)\n```\n# code\n```\n## Twice\n## Twice\n#none\n");
        assert_eq!(
            names,
            ["the-dkim-keys", "twice", "twice-1"]
                .map(str::to_owned)
                .into()
        );
    }
}
