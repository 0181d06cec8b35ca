//! The help of all commands: groups on the first page, examples on every page.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::{Cli, examples};

/// The commands by purpose, in the order of the first page. A test finds forgotten ones.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Run",
        &["quickstart", "serve", "reload", "check-config", "config"],
    ),
    (
        "Look after",
        &["status", "doctor", "support-bundle", "backup", "restore"],
    ),
    (
        "Accounts and domains",
        &["account", "domain", "alias", "dkim", "dns", "auth"],
    ),
    (
        "Mail on its way",
        &[
            "queue",
            "trace",
            "resolve",
            "dial",
            "explain",
            "quarantine",
            "reports",
        ],
    ),
    ("Mailboxes", &["mailbox", "store", "import", "export", "fs"]),
    ("Parts", &["spool", "node", "dnsbl", "filter", "x400"]),
    (
        "Programs and tools",
        &["sendmail", "sink", "bench", "man", "completions"],
    ),
];
/// The group of further commands.
const REST: &str = "Other";

/// The command line with all help.
pub(crate) fn described() -> Command {
    let command = with_examples(Cli::command(), "vere");
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// The commands by group, each with a first line of help.
fn groups(command: &Command) -> String {
    let shown: Vec<&Command> = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .collect();
    let width = shown
        .iter()
        .map(|one| one.get_name().len())
        .max()
        .unwrap_or(0);
    let named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let mut text = String::new();
    let mut group = |title: &str, members: Vec<&&Command>| {
        if members.is_empty() {
            return;
        }
        let _ = writeln!(text, "{title}:");
        for one in members {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            // The rest is on the page of the command; braces are marks of a template.
            let about = about.split([':', ';', '{', '}']).next().unwrap_or_default();
            let about = about.trim_end_matches('.');
            let _ = writeln!(text, "  {:<width$}  {about}", one.get_name());
        }
        text.push('\n');
    };
    for (title, names) in GROUPS {
        let members = names
            .iter()
            .filter_map(|name| shown.iter().find(|one| one.get_name() == *name));
        group(title, members.collect());
    }
    group(
        REST,
        shown.iter().filter(|one| !named(one.get_name())).collect(),
    );
    text
}

/// Adds the examples of each page to the help, down to the last command.
fn with_examples(command: Command, page: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|one| one.get_name().to_owned())
        .collect();
    let mut command = command;
    for name in names {
        let page = format!("{page}-{name}");
        command = command.mut_subcommand(&name, |one| with_examples(one, &page));
    }
    let examples = examples::pairs(page);
    if examples.is_empty() || command.get_after_help().is_some() {
        return command;
    }
    let mut text = "Examples:".to_owned();
    for (line, effect) in examples {
        let _ = write!(text, "\n  {line}\n      {effect}");
    }
    command.after_help(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name));
            assert_eq!(groups.count(), 1, "{name}");
        }
        let help = described().render_help().to_string();
        assert!(help.contains("\nRun:\n  quickstart "), "{help}");
        assert!(help.contains("Examples:\n  vere quickstart"), "{help}");
        assert!(!help.contains("Other:"), "{help}");
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{help}"
        );
    }

    /// The pages without examples, of commands without subcommands.
    fn without_examples(command: &Command, page: &str, found: &mut Vec<String>) {
        let mut below = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set())
            .peekable();
        // The load generator prints the help of these commands.
        let is_own = !matches!(command.get_name(), "sink" | "bench");
        if is_own && below.peek().is_none() && examples::pairs(page).is_empty() {
            found.push(page.to_owned());
        }
        for one in below {
            without_examples(one, &format!("{page}-{}", one.get_name()), found);
        }
    }

    #[test]
    fn every_page_has_examples() {
        let mut found = Vec::new();
        without_examples(&Cli::command(), "vere", &mut found);
        assert_eq!(found, [] as [String; 0]);
        let queue = described();
        let hold = queue
            .find_subcommand("queue")
            .and_then(|one| one.find_subcommand("hold"));
        let help = hold.unwrap().clone().render_help().to_string();
        assert!(help.contains("\n  vere queue hold example.com\n"), "{help}");
    }
}
