//! The lines of the log, `docs/reference/log.md`, gathered from the macros in the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use crate::workspace::Workspace;

/// The levels, the most urgent first, with the meaning for an operator.
const LEVELS: [(&str, &str); 3] = [
    ("error", "Somebody must act."),
    (
        "warn",
        "Something is not as it should be, or will not be soon.",
    ),
    ("info", "What happens to messages, logins and processes."),
];
/// Folders of crates with log lines.
const FOLDERS: [&str; 5] = [
    "crates/engine",
    "crates/host",
    "crates/part",
    "crates/role",
    "crates/app",
];

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    level: usize,
    message: String,
}

/// Facts about a line, from all places in the sources.
#[derive(Debug, Default)]
struct Facts {
    fields: BTreeSet<String>,
    crates: BTreeSet<String>,
}

/// Makes the page.
///
/// # Errors
/// When no macro is found, as after a change of the library.
pub(crate) fn page(workspace: &Workspace) -> Result<String, String> {
    let mut events: BTreeMap<Event, Facts> = BTreeMap::new();
    for file in workspace.with_extension(&["rs"]).filter(|file| logs(file)) {
        let name = crate_of(file);
        for (event, fields) in events_of(&workspace.text(file)) {
            let facts = events.entry(event).or_default();
            facts.fields.extend(fields);
            facts.crates.insert(name.clone());
        }
    }
    if events.is_empty() {
        return Err("expected macros of tracing in the sources; found none".to_owned());
    }
    Ok(written(&events))
}

fn written(events: &BTreeMap<Event, Facts>) -> String {
    let mut text = String::from(
        "# Log lines\n\nGathered from the sources. `{...}` stands for a value in the text; the fields follow the text as \
         `name=value`, or are members of the object with `log.format = \"json\"`. [Monitor](../guides/monitor.md) says how the \
         log is read.\n",
    );
    for (level, (name, about)) in LEVELS.iter().enumerate() {
        let _ = write!(
            text,
            "\n## {name}\n\n{about}\n\n| line | fields | from |\n|---|---|---|\n"
        );
        for (event, facts) in events.iter().filter(|(event, _)| event.level == level) {
            let list = |names: &BTreeSet<String>| {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                names.join(" ")
            };
            let message = event.message.replace('|', "\\|").replace('<', "&lt;");
            let _ = writeln!(
                text,
                "| {message} | {} | {} |",
                list(&facts.fields),
                list(&facts.crates)
            );
        }
    }
    text
}

fn logs(file: &Path) -> bool {
    let is_test = file
        .iter()
        .any(|part| part == "tests" || part == "tests.rs");
    !is_test && FOLDERS.iter().any(|folder| file.starts_with(folder))
}

/// `crates/role/gateway/src/x.rs` is of `gateway`.
fn crate_of(file: &Path) -> String {
    let part = file.iter().nth(2).unwrap_or_default();
    part.to_string_lossy().into_owned()
}

/// The macros of a file, up to the tests, with the names of the fields.
fn events_of(source: &str) -> Vec<(Event, BTreeSet<String>)> {
    let source = source
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let mut events = Vec::new();
    for (level, (name, _)) in LEVELS.iter().enumerate() {
        let mark = format!("tracing::{name}!(");
        for (at, _) in source.match_indices(&mark) {
            let inner = source
                .get(at + mark.len()..)
                .map(arguments)
                .unwrap_or_default();
            if let Some(message) = inner.last().and_then(|last| literal(last)) {
                let fields = inner
                    .iter()
                    .filter_map(|argument| field(argument))
                    .collect();
                events.push((Event { level, message }, fields));
            }
        }
    }
    events
}

/// The arguments of a macro up to the closing parenthesis, split at commas outside of brackets and texts. Values that
/// fill the text are left out.
fn arguments(source: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for letter in source.chars() {
        match letter {
            '"' if !is_escaped => is_text = !is_text,
            '(' | '[' | '{' if !is_text => depth += 1,
            ')' | ']' | '}' if !is_text && depth == 0 => break,
            ')' | ']' | '}' if !is_text => depth -= 1,
            ',' if !is_text && depth == 0 => {
                if arguments.last().and_then(|last| literal(last)).is_some() {
                    return arguments;
                }
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        if let Some(last) = arguments.last_mut() {
            last.push(letter);
        }
    }
    arguments.retain(|argument| !argument.trim().is_empty());
    arguments
}

/// The text of a literal, with the names of values left out.
fn literal(argument: &str) -> Option<String> {
    let inner = argument.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut is_value = false;
    let mut before = ' ';
    for letter in inner.replace("\\\"", "\"").replace("\\\n", "").chars() {
        match letter {
            '{' => {
                is_value = true;
                text += "{...}";
            }
            '}' => is_value = false,
            // Blanks at a line break within the text.
            ' ' if before == ' ' => {}
            _ if !is_value => text.push(letter),
            _ => {}
        }
        before = letter;
    }
    Some(text)
}

/// The name of a field: `%error`, `pid`, `remote = %host`.
fn field(argument: &str) -> Option<String> {
    let argument = argument.trim();
    let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
    let name = name.trim().trim_start_matches(['%', '?']);
    let name = match value.is_empty() {
        true => name.rsplit('.').next()?,
        false => name,
    };
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || "._".contains(c) || c.is_ascii_digit());
    is_name.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_gathered_with_their_fields() {
        let source = r#"
            tracing::warn!(%error, service, "cannot accept a connection");
            tracing::error!(
                target: MAIL_TARGET,
                queue_id = %envelope.head.trace,
                list = ?[1, 2],
                "expected {expected} results, \
                 found {}",
                found.len()
            );
            #[cfg(test)]
            mod tests {"#;
        let source = source.replace("            ", "");
        let found = events_of(&source);
        let plain: Vec<(usize, &str, Vec<&str>)> = found
            .iter()
            .map(|(event, fields)| {
                (
                    event.level,
                    event.message.as_str(),
                    fields.iter().map(String::as_str).collect(),
                )
            })
            .collect();
        assert_eq!(
            plain,
            [
                (
                    0,
                    "expected {...} results, found {...}",
                    vec!["list", "queue_id"]
                ),
                (1, "cannot accept a connection", vec!["error", "service"]),
            ]
        );
    }
}
