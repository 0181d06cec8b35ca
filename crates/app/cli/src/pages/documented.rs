//! Commands in the documentation can be typed: every command line of a code block is parsed by clap, and commands in
//! sentences name known options and commands.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::Cli;

/// The folders of pages, relative to the root. Pages below `docs/internals` speak about formats.
const FOLDERS: [&str; 4] = ["docs", "docs/guides", "docs/concepts", "."];
/// Pages about earlier versions, and about missing commands.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "status.md"];

/// A command in a page.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    words: Vec<String>,
    /// In a sentence, where arguments may be missing.
    is_named: bool,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut pages = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root.join(folder))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") && !HISTORY.contains(&name.as_str()) {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The commands of a page.
fn commands(page: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    let mut line_before = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if is_fenced || line.starts_with("    ") {
            let whole = format!("{line_before}{}", line.trim());
            line_before.clear();
            match whole.strip_suffix('\\') {
                Some(begin) => line_before = format!("{begin} "),
                None => found.extend(typed(&whole).map(|words| Found {
                    words,
                    is_named: false,
                })),
            }
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            let named = spans.filter_map(typed);
            found.extend(named.map(|words| Found {
                words,
                is_named: true,
            }));
        }
    }
    found
}

/// The words of a line as a shell hands them to `vere`; for other programs none.
fn typed(line: &str) -> Option<Vec<String>> {
    let words = words(line.strip_prefix("$ ").unwrap_or(line));
    let is_before = |word: &String| word == "sudo" || word.contains('=') && !word.starts_with('-');
    let mut words = words.into_iter().skip_while(is_before);
    let program = words.next()?;
    let is_vere = program == "vere" || program == "./vere" || program == "/usr/bin/vere";
    let words: Vec<String> = words.collect();
    (is_vere && !words.is_empty()).then(|| [vec!["vere".to_owned()], words].concat())
}

/// Splits a line as a shell does, up to a comment, a redirection or the next command.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(mark), _) if letter == mark => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '<' | ';' | '&') => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// A word in capitals stands for a value of the reader.
fn is_placeholder(word: &str) -> bool {
    let has_letters = word.chars().any(|letter| letter.is_ascii_uppercase());
    has_letters && !word.chars().any(|letter| letter.is_ascii_lowercase())
}

fn fault(found: &Found) -> Option<String> {
    let error = Cli::try_parse_from(&found.words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            found.is_named || found.words.iter().any(|word| is_placeholder(word))
        }
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => found.is_named,
        _ => false,
    };
    (!is_fine).then(|| format!("{}: {error}", found.words.join(" ")))
}

#[test]
fn every_command_of_the_documentation_can_be_typed() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for found in commands(&text) {
            count += 1;
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            faults.extend(fault(&found).map(|what| format!("{name}: {what}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 200, "{count} commands alone");
}

#[test]
fn lines_are_split_as_a_shell_does() {
    let page = "    $ vere trace 'a b' --json   # why\n    sudo ./vere queue list | less\n```\nX=1 vere fs \\\n   status home > file\n```\n\
                Text with `vere dial` and `ls`.\n";
    let found: Vec<String> = commands(page)
        .iter()
        .map(|one| one.words.join(" "))
        .collect();
    assert_eq!(
        found,
        [
            "vere trace a b --json",
            "vere queue list",
            "vere fs status home",
            "vere dial"
        ]
    );
    let wrong = Found {
        words: words("vere queue liist"),
        is_named: true,
    };
    assert!(fault(&wrong).is_some());
    let unknown = Found {
        words: words("vere queue list --jsn"),
        is_named: true,
    };
    assert!(fault(&unknown).is_some());
}
