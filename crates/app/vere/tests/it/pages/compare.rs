//! Whether an output is the one that a page shows.

/// Units stand beside numbers, and change with them.
const UNITS: [&str; 14] = [
    "s", "ms", "min", "h", "d", "B", "KiB", "MiB", "GiB", "KiB/s", "MiB/s", "octets", "second",
    "seconds",
];
/// Words that stand for a value of the reader's own system.
const PLACEHOLDERS: [&str; 5] = ["NUMBER", "TIME", "SIZE", "SECONDS", "N"];

/// A text with these ports moved by an offset. A port stands behind a colon, or behind a comma as in Python.
pub(super) fn ports_moved(text: &str, ports: &[u16], offset: u16) -> String {
    let mut text = text.to_owned();
    // Marks, so that no port is moved twice.
    for port in ports {
        for before in [":", ", "] {
            text = text.replace(&format!("{before}{port}"), &format!("{before}@{port}@"));
        }
    }
    for port in ports {
        text = text.replace(&format!("@{port}@"), &(port + offset).to_string());
    }
    text
}

/// Whether an output has the words of a shown line, in order, in one line. Words with digits differ from run to run,
/// unless `put` changes them: ports do not.
pub(super) fn has(output: &str, shown: &str, put: impl Fn(&str) -> String) -> bool {
    let wanted: Vec<String> = shown
        .split_whitespace()
        .map(|word| (word, put(word)))
        .filter(|(word, moved)| word != moved || is_fixed(word))
        .map(|(_, moved)| moved)
        .collect();
    output.lines().any(|line| {
        let mut words = line.split_whitespace();
        wanted
            .iter()
            .all(|wanted| words.any(|word| stem(word) == stem(wanted)))
    })
}

/// A word without what depends on a number before: "1 pack", "2 packs,".
fn stem(word: &str) -> &str {
    word.trim_end_matches([',', '.', ';', ':', ')'])
        .trim_end_matches('s')
}

/// Whether a word is the same in every run.
fn is_fixed(word: &str) -> bool {
    let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    let is_left_out = word.contains("...") || word.contains('…');
    let is_value = word.contains(|letter: char| letter.is_ascii_digit());
    !is_left_out && !is_value && !UNITS.contains(&bare) && !PLACEHOLDERS.contains(&bare)
}

#[test]
fn numbers_may_differ_and_words_and_ports_may_not() {
    let put = |word: &str| ports_moved(word, &[2525], 100);
    let output = "one\n3 messages (4.0 KiB) to 127.0.0.1:2625 in 1 s\n";
    let has = |shown: &str| has(output, shown, put);
    assert!(has("12 messages (9 B) to 127.0.0.1:2525 in 3 ms"));
    assert!(has("..."));
    assert!(!has("12 messages (9 B) to 127.0.0.1:2525 at 3 ms"));
    assert!(has("1 message (4 B)"));
    assert!(!has("1 mail to"));
    assert!(!has("one 3 messages"));
}
