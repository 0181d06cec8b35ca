//! Colours of the words for a state, at a terminal.

use std::io::IsTerminal as _;

/// The words at the beginning of lines, with colours (ECMA-48 section 8.3.117, SGR).
const WORDS: [(&str, &str); 4] = [
    ("OK", "\u{1b}[32m"),
    ("WARNING", "\u{1b}[33m"),
    ("CRITICAL", "\u{1b}[31m"),
    ("UNKNOWN", "\u{1b}[35m"),
];
const PLAIN: &str = "\u{1b}[0m";

/// Whether standard output is a terminal with colours, and the user allows colours (`NO_COLOR`).
pub(crate) fn is_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !refused && !is_dumb && std::io::stdout().is_terminal()
}

/// The text with a colour for the state at the beginning of a line.
pub(crate) fn painted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let word = line.trim_start_matches(' ');
        let indent = line.len() - word.len();
        let found = WORDS.iter().find_map(|(state, colour)| {
            let rest = word.strip_prefix(state)?;
            let ends = rest.starts_with([':', ' ']);
            (indent <= 2 && ends).then_some((state, colour, rest))
        });
        match found {
            Some((state, colour, rest)) => {
                out += line.get(..indent).unwrap_or_default();
                out += &format!("{colour}{state}{PLAIN}{rest}");
            }
            None => out += line,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::painted;

    #[test]
    fn states_at_the_beginning_of_lines_are_painted() {
        let text = "WARNING: x\n  OK       mx  found\n  OKAY\n    OK too deep\nand OK\nCRITICAL: y";
        let expected = "\u{1b}[33mWARNING\u{1b}[0m: x\n  \u{1b}[32mOK\u{1b}[0m       mx  found\n  OKAY\n    OK too deep\n\
                        and OK\n\u{1b}[31mCRITICAL\u{1b}[0m: y";
        assert_eq!(painted(text), expected);
    }
}
