//! The length of files and crates. (The length of functions is clippy's: `too-many-lines-threshold`.)
//!
//! A crate may have [`CRATE`] lines without tests, and a file [`GATE`]. A file of more than [`AIM`] lines stands in
//! `xtask/sizes.txt` with its length, which may only fall; tables and grammars belong there too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// Lines that a file should not exceed.
const AIM: usize = 500;
/// Lines that no file may exceed.
const GATE: usize = 1000;
/// Lines that no crate below `crates` may exceed.
const CRATE: usize = 12_000;
/// The list of files above the aim, relative to the root.
const LIST: &str = "xtask/sizes.txt";

/// Compares every file with the gate, the aim and the list.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let listed = listed(workspace);
    let mut findings = large_crates(workspace);
    for (file, lines) in long_files(workspace) {
        let agreed = listed.get(&file).copied();
        if lines > GATE {
            findings.push(Finding::new(
                &file,
                GATE,
                format!("{lines} lines, {GATE} is the gate: split it"),
            ));
        } else if agreed.is_none() {
            findings.push(Finding::new(
                &file,
                AIM,
                format!("{lines} lines, the aim is {AIM}: split it, or argue for a line in {LIST}"),
            ));
        } else if agreed.is_some_and(|agreed| lines > agreed) {
            findings.push(Finding::new(
                &file,
                AIM,
                format!(
                    "{lines} lines, {LIST} agrees to {}: it may only shrink",
                    agreed.unwrap_or(0)
                ),
            ));
        }
    }
    let long: BTreeMap<_, _> = long_files(workspace).collect();
    for (file, agreed) in &listed {
        let lines = long.get(file).copied().unwrap_or(0);
        if lines < *agreed {
            let what = format!(
                "{} has shrunk below {agreed} lines: run `cargo xtask sizes --write`",
                file.display()
            );
            findings.push(Finding::new(LIST, 0, what));
        }
    }
    findings.into()
}

fn large_crates(workspace: &Workspace) -> Vec<Finding> {
    let mut crates: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let files = workspace.with_extension(&["rs"]);
    for file in files.filter(|file| !is_test(file)) {
        // crates/LAYER/NAME
        let folder: PathBuf = file.iter().take(3).collect();
        if folder.starts_with("crates") {
            *crates.entry(folder).or_default() += lines_without_tests(&workspace.text(file));
        }
    }
    let large = crates.into_iter().filter(|(_, lines)| *lines > CRATE);
    large
        .map(|(folder, lines)| {
            let what = format!("{lines} lines without tests, {CRATE} is the gate: split the crate");
            Finding::new(folder, 0, what)
        })
        .collect()
}

/// Lowers the numbers in the list to the present lengths, and removes files that are short or gone.
/// Never adds.
pub(crate) fn write(workspace: &Workspace) -> Outcome {
    let long: BTreeMap<_, _> = long_files(workspace).collect();
    let lines: Vec<String> = listed(workspace)
        .iter()
        .filter_map(|(file, agreed)| {
            let now = *long.get(file)?;
            Some(format!("{} {}\n", now.min(*agreed), file.display()))
        })
        .collect();
    match fs::write(workspace.root.join(LIST), lines.concat()) {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(vec![Finding::new(LIST, 0, error.to_string())]),
    }
}

fn listed(workspace: &Workspace) -> BTreeMap<PathBuf, usize> {
    workspace
        .text(Path::new(LIST))
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(lines, file)| Some((PathBuf::from(file), lines.parse().ok()?)))
        .collect()
}

fn long_files(workspace: &Workspace) -> impl Iterator<Item = (PathBuf, usize)> {
    workspace
        .with_extension(&["rs", "sh"])
        .filter(|file| !is_test(file))
        .map(|file| (file.to_owned(), lines_without_tests(&workspace.text(file))))
        .filter(|(_, lines)| *lines > AIM)
}

/// Whether the whole file is tests.
fn is_test(file: &Path) -> bool {
    let is_tests = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    file.iter().any(is_tests)
}

/// Lines up to the test module at the end of the file.
fn lines_without_tests(text: &str) -> usize {
    text.lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    fn long(lines: usize) -> String {
        "//\n".repeat(lines) + "#[cfg(test)]\nmod tests {\n" + &"//\n".repeat(900) + "}\n"
    }

    fn count(files: &[(&str, &str)]) -> usize {
        let (_folder, workspace) = made_of(files);
        match check(&workspace) {
            Outcome::Failed(findings) => findings.len(),
            _ => 0,
        }
    }

    #[test]
    fn tests_do_not_count() {
        assert_eq!(count(&[("a.rs", &long(AIM))]), 0);
        assert_eq!(count(&[("a.rs", &long(AIM + 1))]), 1);
        assert_eq!(
            count(&[
                ("a/tests.rs", &"//\n".repeat(2000)),
                ("tests/it.rs", &"//\n".repeat(2000))
            ]),
            0
        );
    }

    #[test]
    fn a_listed_file_may_stay_but_not_grow() {
        assert_eq!(count(&[("a.rs", &long(600)), (LIST, "600 a.rs\n")]), 0);
        assert_eq!(count(&[("a.rs", &long(601)), (LIST, "600 a.rs\n")]), 1);
        assert_eq!(count(&[("a.rs", &long(599)), (LIST, "600 a.rs\n")]), 1);
        assert_eq!(count(&[("a.rs", &long(1001)), (LIST, "1001 a.rs\n")]), 1);
    }

    #[test]
    fn a_crate_may_not_grow_beyond_the_gate() {
        let file = long(CRATE / 30);
        let names: Vec<_> = (0..31)
            .map(|number| format!("crates/base/units/src/f{number}.rs"))
            .collect();
        let files = |count: usize| -> Vec<_> {
            let names = names.iter().take(count);
            names.map(|name| (name.as_str(), file.as_str())).collect()
        };
        assert_eq!((count(&files(30)), count(&files(31))), (0, 1));
    }

    #[test]
    fn writing_lowers_and_never_raises() {
        let text = "700 a.rs\n550 b.rs\n600 gone.rs\n";
        let (_folder, workspace) =
            made_of(&[("a.rs", &long(600)), ("b.rs", &long(560)), (LIST, text)]);
        assert_eq!(write(&workspace), Outcome::Passed);
        assert_eq!(workspace.text(Path::new(LIST)), "600 a.rs\n550 b.rs\n");
    }
}
