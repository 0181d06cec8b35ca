//! The names in an expression of PromQL. Only names are looked for; the syntax is a matter for promtool.

use std::collections::BTreeSet;

/// The prefix of our metrics.
const PREFIX: &str = "vere_";

/// Words in front of a list of labels.
const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// A comparison of a label with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Matcher {
    pub(super) label: String,
    /// `=`, `!=`, `=~` or `!~`.
    pub(super) operator: String,
    pub(super) value: String,
}

/// A metric of ours with its comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    pub(super) name: String,
    pub(super) matchers: Vec<Matcher>,
}

/// The names in an expression.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) selected: Vec<Selected>,
    /// The labels of `by`, `on` and the like.
    pub(super) grouped: BTreeSet<String>,
}

impl Usage {
    /// Finds the names in an expression.
    pub(super) fn of(expression: &str) -> Self {
        let mut usage = Self::default();
        let mut rest = Scanner(expression);
        while let Some(first) = rest.0.chars().next() {
            if matches!(first, '"' | '\'') {
                rest.quoted();
            } else if first == '{' {
                // The metric in front is none of ours.
                rest.matchers();
            } else if is_letter(first) {
                let word = rest.word();
                if word.starts_with(PREFIX) {
                    usage.selected.push(Selected {
                        name: word.to_owned(),
                        matchers: rest.matchers(),
                    });
                } else if GROUPING.contains(&word) {
                    usage.grouped.extend(rest.list());
                }
            } else if first.is_ascii_digit() || first == '$' {
                // A number with its unit, or a variable of Grafana.
                rest.skip(first.len_utf8());
                rest.word();
            } else {
                rest.skip(first.len_utf8());
            }
        }
        usage
    }
}

/// The part of an expression that is still to be read.
struct Scanner<'a>(&'a str);

impl<'a> Scanner<'a> {
    fn skip(&mut self, octets: usize) {
        self.0 = self.0.get(octets..).unwrap_or_default();
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start();
    }

    fn until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(is_end).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at_checked(end).unwrap_or((self.0, ""));
        self.0 = rest;
        text
    }

    /// Letters and digits; empty before any other character.
    fn word(&mut self) -> &'a str {
        self.until(|c| !is_letter(c) && !c.is_ascii_digit())
    }

    /// The content of a text in quotes.
    fn quoted(&mut self) -> &'a str {
        let Some(quote) = self.0.chars().next() else {
            return "";
        };
        self.skip(quote.len_utf8());
        let text = self.until(|c| c == quote);
        self.skip(quote.len_utf8());
        text
    }

    /// `{label="value",...}`; empty where no brace follows.
    fn matchers(&mut self) -> Vec<Matcher> {
        let mut matchers = Vec::new();
        if !self.0.trim_start().starts_with('{') {
            return matchers;
        }
        self.skip_space();
        self.skip(1);
        while !self.0.is_empty() && !self.0.starts_with('}') {
            let label = self.word().to_owned();
            self.skip_space();
            let operator = self.until(|c| !matches!(c, '=' | '!' | '~')).to_owned();
            self.skip_space();
            if self.0.starts_with(['"', '\'']) {
                let value = self.quoted().to_owned();
                matchers.push(Matcher {
                    label,
                    operator,
                    value,
                });
            }
            self.until(|c| c == '}' || is_letter(c));
        }
        self.skip(1);
        matchers
    }

    /// `(a, b)`; empty where no parenthesis follows.
    fn list(&mut self) -> Vec<String> {
        self.skip_space();
        if !self.0.starts_with('(') {
            return Vec::new();
        }
        self.skip(1);
        let inner = self.until(|c| c == ')');
        let labels = inner.split(',').map(str::trim);
        labels
            .filter(|label| !label.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_labels_and_groups_are_found() {
        let usage = Usage::of(
            "sum by (job, le) (rate(vere_a_bucket{kind=~\"x|y\", result!=\"ok\"}[$__rate_interval])) / on(node) vere_b \
             > 5m and up{job=\"vere\"} unless label(\"vere_quoted\")",
        );
        let names: Vec<&str> = usage.selected.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["vere_a_bucket", "vere_b"]);
        let matchers: Vec<String> = usage.selected[0]
            .matchers
            .iter()
            .map(|one| format!("{} {} {}", one.label, one.operator, one.value))
            .collect();
        assert_eq!(matchers, ["kind =~ x|y", "result != ok"]);
        let grouped: Vec<&str> = usage.grouped.iter().map(String::as_str).collect();
        assert_eq!(grouped, ["job", "le", "node"]);
    }

    #[test]
    fn broken_expressions_end() {
        for text in [
            "vere_a{",
            "vere_a{x",
            "vere_a{x=",
            "vere_a{x=\"",
            "by (",
            "\"",
            "}",
            "ä{ö",
        ] {
            assert!(Usage::of(text).selected.len() <= 1, "{text}");
        }
    }
}
