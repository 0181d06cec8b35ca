//! The built book: its links lead to its files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::finding::Finding;
use crate::links::normal;

/// Links of built pages that lead to no file.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn dead_links(folder: &Path) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for page in pages(folder)? {
        let text = fs::read_to_string(&page)?;
        let from = page.parent().unwrap_or(folder);
        let dead = links(&text).filter(|link| !normal(&from.join(link)).exists());
        findings.extend(dead.map(|link| {
            let shown = page.strip_prefix(folder).unwrap_or(&page);
            let what = format!("a link of the built book leads to {link}, which does not exist");
            Finding::new(shown, 0, what)
        }));
    }
    Ok(findings)
}

/// The pages in HTML below a folder. The page of all pages for a printer repeats the others in one place, and the
/// page of a missing file is read at any place.
fn pages(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut pages, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(one)? {
            let path = entry?.path();
            let is_html = path
                .extension()
                .is_some_and(|extension| extension == "html");
            let is_other = ["print.html", "404.html"]
                .iter()
                .any(|name| path.ends_with(name));
            if path.is_dir() {
                folders.push(path);
            } else if is_html && !is_other {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// The files to which a page links, without those of other servers.
fn links(html: &str) -> impl Iterator<Item = &str> {
    html.match_indices("href=\"").filter_map(|(at, mark)| {
        let rest = html.get(at + mark.len()..)?;
        let link = rest.split(['"', '#']).next()?;
        (!link.is_empty() && !link.contains(':')).then_some(link)
    })
}

#[test]
fn a_link_to_a_missing_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let page = "<a href=\"b.html#x\">b</a> <a href=\"../c.html\">c</a> <a href=\"https://example.org/\">d</a>";
    fs::create_dir(folder.path().join("a")).unwrap();
    fs::write(folder.path().join("a/a.html"), page).unwrap();
    fs::write(folder.path().join("a/b.html"), "").unwrap();
    let found: Vec<String> = dead_links(folder.path())
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let expected = "a/a.html: a link of the built book leads to ../c.html, which does not exist";
    assert_eq!(found, [expected]);
}
