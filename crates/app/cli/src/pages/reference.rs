//! All commands as a page of Markdown, for the documentation: `docs/reference/commands.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, Command};

use super::{examples, exit_status};

/// Options of every command, described once at the top.
const EVERYWHERE: [&str; 3] = ["config", "help", "version"];

/// The page.
pub(super) fn page(cli: &Command) -> String {
    let mut cli = cli.clone();
    cli.build();
    let mut leaves = Vec::new();
    collect(&cli, "vere", &mut leaves);
    let mut text = String::from(
        "# Commands\n\nPrinted by `vere man --markdown`; the manual pages (`man vere-queue-list`) have the same content.\n\n\
         Every command that reads settings takes `-c FILE`. Without it the commands read `$VERE_CONFIG`, then `run/vere.toml` \
         below the working directory, then `/etc/vere/vere.toml`. `-h` prints a summary, `--help` everything.\n",
    );
    text += &exit_codes(&leaves);
    text += &json(&leaves);
    for (name, command) in &leaves {
        text += &section(name, command);
    }
    text
}

/// Every shown command that does something by itself, with the words of the command line.
fn collect<'a>(command: &'a Command, name: &str, leaves: &mut Vec<(String, &'a Command)>) {
    let mut below = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set() && one.get_name() != "help")
        .peekable();
    // Some commands act, and have subcommands as well: `vere backup PLACE`.
    let acts = !command.is_subcommand_required_set() && has_own(command);
    if below.peek().is_none() || acts {
        leaves.push((name.to_owned(), command));
    }
    for one in below {
        collect(one, &format!("{name} {}", one.get_name()), leaves);
    }
}

/// Whether a command has arguments or options of its own.
fn has_own(command: &Command) -> bool {
    let everywhere = |option: &&Arg| EVERYWHERE.contains(&option.get_id().as_str());
    !command.get_arguments().all(|option| everywhere(&option))
}

fn exit_codes(leaves: &[(String, &Command)]) -> String {
    let mut commands: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, _) in leaves {
        let codes = exit_status(&name.replace(' ', "-"));
        commands.entry(codes).or_default().push(name);
    }
    // The most common codes come first, as codes of all remaining commands.
    let mut rows: Vec<(String, Vec<&str>)> = commands.into_iter().collect();
    rows.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut text = String::from("\n## Exit codes\n\n| command | exit codes |\n|---|---|\n");
    for (place, (codes, names)) in rows.iter().enumerate() {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let names = if place == 0 {
            "all others".to_owned()
        } else {
            names.join(", ")
        };
        let _ = writeln!(text, "| {names} | {} |", cell(codes));
    }
    text
}

fn json(leaves: &[(String, &Command)]) -> String {
    let mut text = String::from(
        "\n## JSON\n\nWith `--json` a command prints JSON on standard output, for programs: times as in RFC 3339, sizes in bytes. \
         Fields may be added; their names and meanings stay.\n\n| command | `--json` |\n|---|---|\n",
    );
    for (name, command) in leaves {
        let option = command
            .get_arguments()
            .find(|option| option.get_long() == Some("json"));
        if let Some(option) = option {
            let _ = writeln!(text, "| `{name}` | {} |", cell(&help(option)));
        }
    }
    text
}

fn section(name: &str, command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    let usage = command.clone().bin_name(name).render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut text = format!(
        "\n## `{name}`\n\n{}\n\n```text\n{usage}\n```\n",
        sentence(&about.map(ToString::to_string).unwrap_or_default())
    );
    let shown =
        |option: &&Arg| !option.is_hide_set() && !EVERYWHERE.contains(&option.get_id().as_str());
    let mut options = command.get_arguments().filter(shown).peekable();
    if options.peek().is_some() {
        text += "\n| argument or option | meaning |\n|---|---|\n";
    }
    for option in options {
        let name = spelled(option).replace('|', "\\|");
        let _ = writeln!(text, "| {name} | {} |", cell(&help(option)));
    }
    let examples = examples::pairs(&name.replace(' ', "-"));
    if !examples.is_empty() {
        text += "\n```console\n";
        for (line, effect) in examples {
            let _ = writeln!(text, "# {effect}\n$ {line}");
        }
        text += "```\n";
    }
    text
}

/// The names of an option with the value, or the name of an argument.
fn spelled(option: &Arg) -> String {
    let takes = option.get_action().takes_values();
    let values: Vec<String> = option
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(|value| value.to_string())
        .collect();
    let value = values.join(" ");
    if option.is_positional() {
        return format!("`{value}`");
    }
    let short = option.get_short().map(|letter| format!("-{letter}"));
    let long = option.get_long().map(|word| format!("--{word}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    match takes {
        true => format!("`{} {value}`", names.join("`, `")),
        false => format!("`{}`", names.join("`, `")),
    }
}

/// The help of an option, with default and values.
fn help(option: &Arg) -> String {
    let text = option.get_long_help().or_else(|| option.get_help());
    let mut text = sentence(&text.map(ToString::to_string).unwrap_or_default());
    let values: Vec<String> = option
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() && option.get_action().takes_values() {
        let _ = write!(text, " One of {}.", values.join(", "));
    }
    let defaults: Vec<String> = option
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() && option.get_action().takes_values() {
        let _ = write!(text, " Default: {}.", defaults.join(", "));
    }
    text
}

/// A text with the full stop, which clap removes.
fn sentence(text: &str) -> String {
    let text = text.trim();
    match text.is_empty() || text.ends_with(['.', ':', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// A text in one line, without the mark between cells, and without tags outside of code.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace('|', "\\|");
    let parts = text.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(number, part)| match number % 2 {
            0 => part.replace('<', "&lt;"),
            _ => part.to_owned(),
        })
        .collect();
    parts.join("`")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_has_a_section_with_options_and_examples() {
        let page = page(&Cli::command());
        for part in [
            "\n## `vere queue hold`\n",
            "\n## `vere sendmail`\n",
            "\n## `vere backup`\n",
            "\n## `vere reports`\n",
            "| `vere backup` | Print JSON: an object with `number`",
            "`source <(vere completions bash)`",
            "| `--timeout SECONDS` | Wait for the roles for this many seconds. Default: `30`. |",
            "$ vere queue hold example.com\n",
            "| `vere dial` | 0: ",
            "| all others | 0: ",
            "| `vere status` | Print JSON: an object with ",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        let json = page.split("\n## ").find(|part| part.starts_with("JSON"));
        let rows = json.unwrap().lines().filter(|line| line.starts_with("| `"));
        for row in rows {
            let fields = row.split(" | ").nth(1).unwrap();
            assert!(
                fields.contains('`') || row.contains("`vere fs"),
                "no fields: {row}"
            );
        }
        assert!(!page.contains("## `vere demo"), "hidden");
        assert!(!page.contains("`--help`, "), "{page}");
        for line in page.lines().filter(|line| line.starts_with("| ")) {
            let marks = line.replace("\\|", "").matches('|').count();
            assert_eq!(marks, 3, "{line}");
        }
    }
}
