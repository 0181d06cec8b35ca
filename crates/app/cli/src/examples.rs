//! Examples of commands for their manual pages, from `examples.txt`: below the name of a page in brackets, command
//! lines to type unchanged, each followed by an indented line with the effect.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The text of all examples.
const TEXT: &str = include_str!("examples.txt");

/// The lines of each page, split once: every start of the program looks up each page.
static PAGES: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut pages: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut page = "";
    for line in TEXT.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[') {
            Some(name) => page = name.trim_end_matches(']'),
            None => pages.entry(page).or_default().push(line),
        }
    }
    pages
});

/// The lines of a page.
fn lines(page: &str) -> &'static [&'static str] {
    PAGES.get(page).map_or(&[], Vec::as_slice)
}

/// The command lines of a page, each with its effect.
pub(super) fn pairs(page: &str) -> Vec<(&'static str, &'static str)> {
    let pair = |pair: &[&'static str]| Some((*pair.first()?, pair.get(1)?.trim()));
    lines(page).chunks(2).filter_map(pair).collect()
}

/// The section of a page; empty for a page without examples.
pub(super) fn section(page: &str) -> String {
    let mut text = String::new();
    for line in lines(page) {
        // Groff would print a hyphen for a dash, and quotes unknown to a shell.
        let plain = line.trim().replace('-', "\\-").replace('\'', "\\(aq");
        text += match line.starts_with(' ') {
            true => "",
            false => ".TP\n",
        };
        text += &format!("\\&{plain}\n");
    }
    match text.is_empty() {
        true => text,
        false => format!(".SH EXAMPLES\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::{Cli, Command};

    fn pages() -> Vec<&'static str> {
        let heads = TEXT.lines().filter_map(|line| line.strip_prefix('['));
        heads.filter_map(|line| line.strip_suffix(']')).collect()
    }

    /// The words of a line as a shell splits the line: quoted words whole, and no redirection.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" < ").next().unwrap_or_default();
        let parts = line.split('\'').enumerate();
        parts
            .flat_map(|(place, part)| match place % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect()
    }

    #[test]
    fn every_example_can_be_typed_and_is_of_its_page() {
        for page in pages() {
            let lines = lines(page);
            assert!(!lines.is_empty() && lines.len().is_multiple_of(2), "{page}");
            for pair in lines.chunks(2) {
                let (line, what) = (pair[0], pair[1]);
                assert!(what.starts_with("    ") && what.ends_with('.'), "{what}");
                let words = words(line);
                assert!(words.join("-").starts_with(page), "{line} on {page}");
                let parsed = Cli::try_parse_from(&words);
                let Cli { command } = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
                if let Command::Sendmail { words } = command {
                    vere_sendmail::understands(&words)
                        .unwrap_or_else(|error| panic!("{line}: {error}"));
                }
            }
        }
    }

    fn named(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            named(one, &format!("{name}-{}", one.get_name()), found);
        }
        found.push(name.to_owned());
    }

    #[test]
    fn the_commands_of_every_day_have_examples() {
        let (mut names, pages) = (Vec::new(), pages());
        named(&Cli::command(), "vere", &mut names);
        for page in &pages {
            assert!(names.iter().any(|name| name == page), "no page {page}");
            let heads = pages.iter().filter(|other| *other == page).count();
            assert_eq!(heads, 1, "{page}");
        }
        let groups = [
            "account",
            "alias",
            "queue",
            "spool",
            "node",
            "store",
            "import",
            "export",
            "dial",
            "dns",
            "trace",
            "sendmail",
            "serve",
            "dnsbl",
            "quarantine",
            "filter",
            "explain",
            "reload",
            "reports",
            "status",
            "x400",
        ];
        for name in &names {
            let group = name.split('-').nth(1).unwrap_or_default();
            let has = pages.contains(&name.as_str());
            assert!(has || !groups.contains(&group), "{name} has no examples");
        }
    }
}
