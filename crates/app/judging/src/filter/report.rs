//! The answers of filters, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;
use vere_filters::{Answer, Asked, Change, Findings, Outcome, Verdict};
use vere_settings::Settings;

/// Symbols without score that the text leaves out are counted.
const NO_SCORE: f64 = 0.0;

/// The answers of all filters.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    filters: Vec<Row>,
    /// What becomes of the message while a filter gives no answer: `defer`, or nothing.
    deferred_by: Option<String>,
    /// Bytes of the message with all changes; absent if no filter changed it.
    changed_bytes: Option<usize>,
    /// The header of the changed message.
    changed_header: Option<String>,
    reverse_path: Option<String>,
    recipients_added: Vec<String>,
    recipients_deleted: Vec<String>,
    /// Whether a filter discards the message by deleting all recipients.
    discarded: bool,
}

/// The answer of a filter.
#[derive(Debug, Serialize)]
struct Row {
    filter: String,
    kind: &'static str,
    address: String,
    /// `accept`, `mark`, `quarantine`, `defer`, `reject`, `too long`, `unavailable` or `not asked`.
    verdict: &'static str,
    /// The filter's own words.
    text: String,
    score: Option<f64>,
    required: Option<f64>,
    virus: Option<String>,
    symbols: Vec<Symbol>,
    changes: Vec<String>,
    milliseconds: f64,
}

#[derive(Debug, Serialize)]
struct Symbol {
    name: String,
    score: f64,
    options: Vec<String>,
}

impl Report {
    pub(crate) fn of(settings: &Settings, findings: &Findings) -> Self {
        let rows = settings.filters.iter().map(|filter| {
            let mut answers = findings.answers.iter();
            let answer = answers.find(|answer| answer.filter == filter.name);
            Row {
                kind: filter.kind.name(),
                address: filter.address.to_string(),
                ..Row::of(&filter.name, answer)
            }
        });
        let header = |message: &[u8]| {
            let end = message.windows(4).position(|four| four == b"\r\n\r\n");
            let header = message.get(..end.unwrap_or(message.len()));
            String::from_utf8_lossy(header.unwrap_or_default()).into_owned()
        };
        let message = findings.message.as_deref();
        Self {
            filters: rows.collect(),
            deferred_by: findings.defer.as_ref().map(|defer| defer.filter.clone()),
            changed_bytes: message.map(<[u8]>::len),
            changed_header: message.map(header),
            reverse_path: findings.reverse_path.clone(),
            recipients_added: findings.added.clone(),
            recipients_deleted: findings.deleted.clone(),
            discarded: findings.is_discarded,
        }
    }

    /// Whether every filter that was asked has answered.
    pub(super) fn is_whole(&self) -> bool {
        self.filters.iter().all(|row| row.verdict != "unavailable")
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.filters {
            row.write(&mut text);
        }
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key:<14}{}", shown(value));
        };
        if let Some(filter) = &self.deferred_by {
            line("deferred by", filter);
        }
        if let Some(path) = &self.reverse_path {
            line("reverse-path", &format!("<{path}>"));
        }
        for to in &self.recipients_added {
            line("recipient +", &format!("<{to}>"));
        }
        for to in &self.recipients_deleted {
            line("recipient -", &format!("<{to}>"));
        }
        if self.discarded {
            line("discarded", "a filter deletes all recipients");
        }
        if let Some(bytes) = self.changed_bytes {
            line("message", &format!("changed, {bytes} bytes"));
        }
        text
    }
}

impl Row {
    fn of(filter: &str, answer: Option<&Answer>) -> Self {
        let mut row = Self {
            filter: filter.to_owned(),
            kind: "",
            address: String::new(),
            verdict: "not asked",
            text: String::new(),
            score: None,
            required: None,
            virus: None,
            symbols: Vec::new(),
            changes: Vec::new(),
            milliseconds: 0.0,
        };
        let Some(answer) = answer else {
            return row;
        };
        row.milliseconds = (answer.took.as_secs_f64() * 1e6).round() / 1e3;
        match &answer.asked {
            Asked::Answered(outcome) => row.answered(outcome),
            Asked::Skipped { octets, size_max } => {
                row.verdict = "too long";
                row.text = format!("{octets} bytes, size_max is {size_max}");
            }
            Asked::Unavailable(failure) => {
                row.verdict = "unavailable";
                row.text = failure.to_string();
            }
        }
        row
    }

    fn answered(&mut self, outcome: &Outcome) {
        let (verdict, text) = match &outcome.verdict {
            Verdict::Accept if outcome.is_marked => ("mark", ""),
            Verdict::Accept => ("accept", ""),
            Verdict::Quarantine(text) => ("quarantine", text.as_str()),
            Verdict::Defer(text) => ("defer", text.as_str()),
            Verdict::Reject(text) => ("reject", text.as_str()),
        };
        self.verdict = verdict;
        let words = [outcome.action.as_str(), text];
        let words = words.into_iter().filter(|word| !word.is_empty());
        self.text = words.collect::<Vec<_>>().join(": ");
        (self.score, self.required) = (outcome.score, outcome.required);
        self.virus.clone_from(&outcome.virus);
        let symbols = outcome.symbols.iter().map(|symbol| Symbol {
            name: symbol.name.clone(),
            score: symbol.score,
            options: symbol.options.clone(),
        });
        self.symbols = symbols.collect();
        let weight = |symbol: &Symbol| symbol.score.abs();
        self.symbols
            .sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        self.changes = outcome.changes.iter().map(described).collect();
    }

    fn write(&self, text: &mut String) {
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(text, "{key:<14}{}", shown(value));
        };
        line(
            "filter",
            &format!("{}  {} at {}", self.filter, self.kind, self.address),
        );
        let words = match self.text.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.text),
        };
        line("  verdict", &format!("{}{words}", self.verdict));
        if let Some(score) = self.score {
            let required = self.required.map(|required| format!(" of {required:.2}"));
            line(
                "  score",
                &format!("{score:.2}{}", required.unwrap_or_default()),
            );
        }
        if let Some(virus) = &self.virus {
            line("  virus", virus);
        }
        for symbol in self.symbols.iter().filter(|symbol| symbol.counts()) {
            let options = match symbol.options.is_empty() {
                true => String::new(),
                false => format!(" [{}]", symbol.options.join(", ")),
            };
            line(
                "  symbol",
                &format!("{:>7.2}  {}{options}", symbol.score, symbol.name),
            );
        }
        let silent = self.symbols.iter().filter(|symbol| !symbol.counts());
        let silent = silent.count();
        if silent > 0 {
            line(
                "  symbols",
                &format!("{silent} more without score (--json)"),
            );
        }
        for change in &self.changes {
            line("  change", change);
        }
        if self.verdict != "not asked" {
            line("  time", &format!("{:.1} ms", self.milliseconds));
        }
        text.push('\n');
    }
}

impl Symbol {
    fn counts(&self) -> bool {
        self.score.abs() > NO_SCORE
    }
}

/// A change in one line.
fn described(change: &Change) -> String {
    let value = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    match change {
        Change::AddHeader { name, value: text } => format!("add {name}: {}", value(text)),
        Change::InsertHeader {
            index,
            name,
            value: text,
        } => format!("insert at {index} {name}: {}", value(text)),
        Change::ChangeHeader {
            index,
            name,
            value: Some(text),
        } => format!("change {name} {index}: {}", value(text)),
        Change::ChangeHeader {
            index,
            name,
            value: None,
        } => format!("delete {name} {index}"),
        Change::AddRecipient { address, .. } => format!("add recipient <{address}>"),
        Change::DeleteRecipient(address) => format!("delete recipient <{address}>"),
        Change::ChangeFrom { address, .. } => format!("change reverse-path to <{address}>"),
        Change::ReplaceBody(_) => "replace the body".to_owned(),
    }
}

/// Texts of filters and messages in one line, with escapes for everything that a terminal would not print.
fn shown(text: &str) -> String {
    let mut line = String::new();
    for letter in text.chars() {
        match letter {
            '\'' | '"' | '\\' => line.push(letter),
            _ => line.extend(letter.escape_debug()),
        }
    }
    line
}
