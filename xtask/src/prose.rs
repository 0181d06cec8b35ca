//! How readable comments are: the share of sentences in which a reader finds no noun, and the share of pronouns.
//!
//! A comment sentence of 8 to 60 words counts as foggy when function words are [`FOGGY_PERCENT`] or more of them. In
//! rustls, quinn, redb, TigerBeetle, mox, maddy and Stalwart 0.0 to 0.5 % of the sentences are foggy, and 2.7 to 5.5
//! % of the words are pronouns. The bounds below are the workspace's own; lower the bounds when the figures have
//! fallen.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

/// Foggy sentences in every thousand. The aim is 10.
const FOGGY_PERMILLE_MAX: usize = 2;
/// Pronouns in every thousand words. The aim is 60.
const PRONOUN_PERMILLE_MAX: usize = 58;

/// Share of function words from which a sentence is foggy.
const FOGGY_PERCENT: usize = 65;
/// Number of words of counted sentences: shorter sentences are phrases, longer sentences are tables.
const WORDS: std::ops::RangeInclusive<usize> = 8..=60;

/// Words that stand for a noun.
const PRONOUNS: &str = "it its they them their those these this that what which who whom whoever whose one ones \
     other others none nothing nobody such same";
/// Further words without subject matter.
const FUNCTION_WORDS: &str = "so as of for by to from in on at than then there here is are was were be been has have \
     had not no anything something else more most many much any all each every and or but if when where while until \
     before after may might can could must would do does did done with without out up also only again";

/// A comment sentence: the line of the comment's end, and the words in lower case.
struct Sentence {
    file: PathBuf,
    line: usize,
    words: Vec<String>,
}

/// The words of both lists.
struct Lists {
    pronouns: HashSet<&'static str>,
    function: HashSet<&'static str>,
}

impl Lists {
    fn new() -> Self {
        let pronouns: HashSet<_> = PRONOUNS.split_whitespace().collect();
        let mut function: HashSet<_> = FUNCTION_WORDS.split_whitespace().collect();
        function.extend(&pronouns);
        Self { pronouns, function }
    }

    fn is_foggy(&self, sentence: &Sentence) -> bool {
        let empty = sentence
            .words
            .iter()
            .filter(|word| self.function.contains(word.as_str()));
        empty.count() * 100 >= sentence.words.len() * FOGGY_PERCENT
    }

    fn pronouns_in(&self, sentence: &Sentence) -> usize {
        let pronouns = sentence
            .words
            .iter()
            .filter(|word| self.pronouns.contains(word.as_str()));
        pronouns.count()
    }
}

/// Compares both shares with their bounds.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let lists = Lists::new();
    let sentences = sentences(workspace);
    let words: usize = sentences.iter().map(|sentence| sentence.words.len()).sum();
    let foggy = sentences
        .iter()
        .filter(|sentence| lists.is_foggy(sentence))
        .count();
    let pronouns: usize = sentences
        .iter()
        .map(|sentence| lists.pronouns_in(sentence))
        .sum();
    let permille = |part: usize, of: usize| (part * 1000).div_ceil(of.max(1));
    let mut findings = Vec::new();
    for (what, found, bound) in [
        (
            "foggy sentences",
            permille(foggy, sentences.len()),
            FOGGY_PERMILLE_MAX,
        ),
        ("pronouns", permille(pronouns, words), PRONOUN_PERMILLE_MAX),
    ] {
        if found > bound {
            let text = format!(
                "{what} of comments: expected at most {bound} in 1,000; found {found}: name the subjects \
                 (`cargo xtask prose --show` lists the sentences)"
            );
            findings.push(Finding::new("xtask/src/prose.rs", 0, text));
        }
    }
    if !findings.is_empty() {
        return Outcome::Failed(findings);
    }
    Outcome::Told(format!(
        "{foggy} of {} comment sentences are foggy, {} of 1,000 words are pronouns",
        sentences.len(),
        permille(pronouns, words)
    ))
}

/// Lists every foggy sentence.
pub(crate) fn show(workspace: &Workspace) -> Outcome {
    let lists = Lists::new();
    let sentences = sentences(workspace);
    let foggy = sentences.iter().filter(|sentence| lists.is_foggy(sentence));
    let lines = foggy.map(|sentence| {
        let Sentence { file, line, words } = sentence;
        format!("{}:{line}: {}", file.display(), words.join(" "))
    });
    Outcome::Told(lines.collect::<Vec<_>>().join("\n   "))
}

fn sentences(workspace: &Workspace) -> Vec<Sentence> {
    let files = workspace.with_extension(&["rs"]);
    let files = files.filter(|file| !is_test(file));
    files
        .flat_map(|file| sentences_of(file, &workspace.text(file)))
        .collect()
}

/// Whether a file is all tests: comments in tests are not counted.
fn is_test(file: &Path) -> bool {
    let mut folders = file.parent().into_iter().flat_map(Path::iter);
    let name = file.file_name().and_then(|name| name.to_str());
    folders.any(|folder| folder == "tests") || name.is_some_and(|name| name.starts_with("test"))
}

fn sentences_of(file: &Path, text: &str) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut comment = String::new();
    for (line, code) in text.lines().chain([""]).enumerate() {
        if let Some(part) = code.trim_start().strip_prefix("//") {
            comment.push_str(part.trim_start_matches(['/', '!']));
            comment.push(' ');
            continue;
        }
        for words in split(&comment) {
            if WORDS.contains(&words.len()) {
                let file = file.to_owned();
                found.push(Sentence { file, line, words });
            }
        }
        comment.clear();
    }
    found
}

/// The words of each sentence; a full stop, question mark or exclamation mark before a blank ends one.
fn split(comment: &str) -> Vec<Vec<String>> {
    let mut sentences = vec![Vec::new()];
    for part in comment.split_whitespace() {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '\'';
        let words = part
            .split(|c| !is_letter(c))
            .filter(|word| !word.is_empty());
        if let Some(last) = sentences.last_mut() {
            last.extend(words.map(str::to_ascii_lowercase));
        }
        if part.ends_with(['.', '?', '!']) {
            sentences.push(Vec::new());
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    const CLEAR: &str =
        "/// Records delay notices of all messages before the newest record of the queue.\n";
    const FOGGY: &str = "// Others at hand are of no use while the one whose turn it is is not.\n";

    fn count(text: &str) -> (usize, usize) {
        let sentences = sentences_of(Path::new("a.rs"), text);
        let lists = Lists::new();
        let foggy = sentences.iter().filter(|sentence| lists.is_foggy(sentence));
        (sentences.len(), foggy.count())
    }

    #[test]
    fn sentences_without_nouns_are_found() {
        assert_eq!(count(CLEAR), (1, 0));
        assert_eq!(count(FOGGY), (1, 1));
        assert_eq!(count(&format!("{CLEAR}fn a() {{}}\n{FOGGY}")), (2, 1));
        // A comment of several lines is a single text, and code between two comments separates the texts.
        assert_eq!(
            count("// The node\n// sends the whole answer\n// to its gateway. Then\nlet a;\n"),
            (1, 0)
        );
        assert_eq!(
            count("let a = \"// not a comment at all but a text of code here\";\n"),
            (0, 0)
        );
    }

    #[test]
    fn a_share_above_the_bound_is_a_finding() {
        let (_folder, clear) =
            made_of(&[("a.rs", CLEAR), ("tests/b.rs", FOGGY), ("test_c.rs", FOGGY)]);
        assert!(matches!(check(&clear), Outcome::Told(_)));
        let (_folder, foggy) = made_of(&[("a.rs", &FOGGY.repeat(2))]);
        assert!(matches!(check(&foggy), Outcome::Failed(_)));
    }
}
