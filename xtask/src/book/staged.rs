//! The pages as mdBook reads them: a copy of `docs`, and of the files outside of it to which pages link.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::links::{normal, targets};
use crate::workspace::Workspace;

/// The folder of the pages, and the folder below it of copies from elsewhere.
const PAGES: &str = "docs";
const OTHERS: &str = "docs/sources";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Writes the pages into a folder, which is emptied first.
///
/// # Errors
/// When a file cannot be read or written.
pub(super) fn write(workspace: &Workspace, folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let pages = workspace.files.iter();
    let mut left: BTreeSet<PathBuf> = pages
        .filter(|file| file.starts_with(PAGES))
        .cloned()
        .collect();
    left.insert(PathBuf::from("book.toml"));
    let mut written: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    while let Some(file) = left.pop_first() {
        let mut content = fs::read(workspace.root.join(&file))?;
        if is_page(&file) {
            let text = String::from_utf8_lossy(&content).into_owned();
            let (text, aims) = moved(workspace, &file, &text);
            content = text.into_bytes();
            left.extend(aims.into_iter().filter(|aim| !written.contains_key(aim)));
        }
        written.insert(file, content);
    }
    let others = summary_of_others(written.keys());
    if let Some(summary) = written.get_mut(Path::new(SUMMARY)) {
        summary.extend(others.into_bytes());
    }
    for (file, content) in written {
        let place = folder.join(place(&file));
        fs::create_dir_all(place.parent().unwrap_or(folder))?;
        fs::write(place, content)?;
    }
    Ok(())
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// The place of a file in the folder of mdBook.
fn place(file: &Path) -> PathBuf {
    if file.starts_with(PAGES) || file == Path::new("book.toml") {
        return file.to_owned();
    }
    Path::new(OTHERS).join(file)
}

/// The lines of the summary for pages from elsewhere: mdBook builds no other page.
fn summary_of_others<'a>(files: impl Iterator<Item = &'a PathBuf>) -> String {
    let mut text = String::new();
    for file in files.filter(|file| is_page(file) && !file.starts_with(PAGES)) {
        if text.is_empty() {
            text += "\n# Elsewhere in the repository\n\n";
        }
        let shown = file.display();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- [{shown}](sources/{shown})");
    }
    text
}

/// A page whose links lead to the places of the files, and the files.
fn moved(workspace: &Workspace, page: &Path, text: &str) -> (String, Vec<PathBuf>) {
    let mut aims = Vec::new();
    let mut lines = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        let links: Vec<String> = targets(&line).map(str::to_owned).collect();
        for link in links {
            let (file, _) = link.split_once('#').unwrap_or((&link, ""));
            let aim = normal(&page.parent().unwrap_or(Path::new("")).join(file));
            let is_moved = !aim.starts_with(PAGES) || !page.starts_with(PAGES);
            if !file.is_empty() && is_moved && workspace.root.join(&aim).is_file() {
                let from = place(page);
                let to = between(from.parent().unwrap_or(Path::new("")), &place(&aim));
                let new = link.replacen(file, &to.display().to_string(), 1);
                line = line.replace(&format!("]({link})"), &format!("]({new})"));
                aims.push(aim);
            }
        }
        lines += &line;
        lines.push('\n');
    }
    (lines, aims)
}

/// The relative path from a folder to a file.
fn between(folder: &Path, file: &Path) -> PathBuf {
    let pairs = folder.components().zip(file.components());
    let common = pairs.take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(common).map(|_| Path::new(".."));
    let down = file.components().skip(common);
    up.map(Path::to_owned)
        .chain(down.map(|part| PathBuf::from(part.as_os_str())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    #[test]
    fn files_elsewhere_are_copied_and_links_lead_to_the_copies() {
        let files = [
            ("book.toml", ""),
            ("docs/SUMMARY.md", "- [A](guides/a.md)\n"),
            (
                "docs/guides/a.md",
                "[x](../../NEWS.md#b) [y](../../src/y.rs) [z](a.md)\n",
            ),
            ("NEWS.md", "[a](docs/guides/a.md#c)\n"),
            ("src/y.rs", "code\n"),
            ("src/other.rs", ""),
        ];
        let (folder, workspace) = made_of(&files);
        let staged = folder.path().join("target/pages");
        write(&workspace, &staged).unwrap();
        let read = |file: &str| fs::read_to_string(staged.join(file)).unwrap();
        let page = read("docs/guides/a.md");
        let expected = "[x](../sources/NEWS.md#b) [y](../sources/src/y.rs) [z](a.md)\n";
        assert_eq!(page, expected);
        assert_eq!(read("docs/sources/NEWS.md"), "[a](../guides/a.md#c)\n");
        assert_eq!(read("docs/sources/src/y.rs"), "code\n");
        assert!(read("docs/SUMMARY.md").ends_with("- [NEWS.md](sources/NEWS.md)\n"));
        assert!(!staged.join("docs/sources/src/other.rs").exists());
    }
}
