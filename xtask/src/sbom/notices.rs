//! The notices: each package with its licence and authors, then the distinct texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::graph::Node;

/// The beginnings of names of notices, in lower case.
const NOTICES: &[&str] = &[
    "license",
    "licence",
    "copying",
    "notice",
    "unlicense",
    "copyright",
];

/// Makes the file.
///
/// # Errors
/// A package names no licence, or its files cannot be read.
pub(super) fn made(package: &str, linked: &BTreeMap<String, Node>) -> Result<String, String> {
    let mut head = format!(
        "{package} contains these packages of others. Where a package offers a choice of licences, any of them may be\n\
         chosen. The texts that the packages bring follow.\n\n"
    );
    // Equal texts differ in their line breaks.
    let mut texts: BTreeMap<String, (String, Vec<&str>)> = BTreeMap::new();
    for (title, node) in linked {
        if node.license.is_empty() {
            return Err(format!("{title} names no licence"));
        }
        let _ = writeln!(head, "{title}  {}", node.license);
        for line in [node.authors.join(", "), node.repository.clone()] {
            if !line.is_empty() {
                let _ = writeln!(head, "    {line}");
            }
        }
        for text in texts_of(node)? {
            let words: Vec<&str> = text.split_whitespace().collect();
            let (_, users) = texts.entry(words.join(" ")).or_insert((text, Vec::new()));
            if users.last() != Some(&title.as_str()) {
                users.push(title);
            }
        }
    }
    let rule = "-".repeat(100);
    let mut texts: Vec<(String, Vec<&str>)> = texts.into_values().collect();
    texts.sort_by(|(_, a), (_, b)| a.cmp(b));
    for (text, users) in texts {
        let _ = write!(
            head,
            "\n{rule}\n{}:\n\n{}\n",
            users.join(", "),
            text.trim_end()
        );
    }
    Ok(head)
}

/// The notices of a package, sorted by name.
fn texts_of(node: &Node) -> Result<Vec<String>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", node.folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&node.folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NOTICES.iter().any(|begin| name.starts_with(begin)) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    let read = files.iter().map(|file| {
        let octets = fs::read(file)?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    });
    read.collect::<Result<_, _>>().map_err(wrong)
}
