//! The names that exist: metrics, settings and commands, as their own lists in the tree have them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::expression::{Matcher, Usage};
use crate::workspace::Workspace;

/// The list of metrics, which a test compares with the program.
const METRICS: &str = "docs/internals/metrics.md";
/// The list of settings.
const CONFIG: &str = "docs/reference/config.md";
/// The list of commands, which a test compares with the program.
const EXAMPLES: &str = "crates/app/cli/src/examples.txt";

/// Labels that Prometheus adds to every metric.
const TARGET_LABELS: [&str; 2] = ["job", "instance"];

/// A metric: whether it is a histogram, and its labels with their values, which are empty where any value is possible.
#[derive(Debug, Default)]
struct Metric {
    is_histogram: bool,
    labels: BTreeMap<String, Vec<String>>,
}

/// The metrics of the program.
#[derive(Debug)]
pub(super) struct Metrics(BTreeMap<String, Metric>);

impl Metrics {
    /// Reads the rows `` | `name` | type | labels | meaning | ``.
    pub(super) fn read(workspace: &Workspace) -> Self {
        let text = workspace.text(Path::new(METRICS));
        Self(text.lines().filter_map(row).collect())
    }

    /// The metric behind a name in an expression, and whether the name is that of its buckets.
    fn find(&self, name: &str) -> Option<(&Metric, bool)> {
        let plain = self.0.get(name).filter(|metric| !metric.is_histogram);
        if let Some(metric) = plain {
            return Some((metric, false));
        }
        let (base, part) = name.rsplit_once('_')?;
        let metric = self.0.get(base).filter(|metric| metric.is_histogram)?;
        matches!(part, "bucket" | "count" | "sum").then_some((metric, part == "bucket"))
    }

    /// Metrics, labels and values of an expression that do not exist.
    pub(super) fn faults(&self, usage: &Usage) -> Vec<String> {
        let mut faults = Vec::new();
        for selected in &usage.selected {
            let name = &selected.name;
            let Some((metric, has_le)) = self.find(name) else {
                let hint = match self.0.get(name) {
                    Some(_) => " (a histogram: name its _bucket, _count or _sum)",
                    None => "",
                };
                faults.push(format!("no metric {name} in {METRICS}{hint}"));
                continue;
            };
            for matcher in &selected.matchers {
                let label = &matcher.label;
                let is_added = TARGET_LABELS.contains(&label.as_str()) || (has_le && label == "le");
                if is_added {
                    continue;
                }
                match metric.labels.get(label) {
                    None => faults.push(format!("no label {label} of {name}")),
                    Some(values) => faults.extend(
                        unknown(matcher, values)
                            .map(|value| format!("no {label}=\"{value}\" of {name}")),
                    ),
                }
            }
        }
        for label in &usage.grouped {
            if !self.has_label(usage, label) {
                faults.push(format!("no metric of the expression has the label {label}"));
            }
        }
        faults
    }

    /// Whether a metric of an expression has a label.
    pub(super) fn has_label(&self, usage: &Usage, label: &str) -> bool {
        TARGET_LABELS.contains(&label)
            || usage.selected.iter().any(|selected| {
                self.find(&selected.name).is_some_and(|(metric, has_le)| {
                    metric.labels.contains_key(label) || (has_le && label == "le")
                })
            })
    }
}

/// The values of a comparison that a label cannot have.
fn unknown<'a>(matcher: &'a Matcher, values: &[String]) -> impl Iterator<Item = &'a str> {
    let is_plain = |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let alternatives = matcher.value.split('|');
    alternatives.filter(move |value| {
        !values.is_empty() && is_plain(value) && !values.iter().any(|known| known == value)
    })
}

fn row(line: &str) -> Option<(String, Metric)> {
    let mut cells = line.strip_prefix("| `vere_")?.split(" | ");
    let name = format!("vere_{}", cells.next()?.trim_end_matches('`'));
    let kind = cells.next()?;
    let labels = cells.next()?.split("; `").filter_map(label).collect();
    let is_histogram = kind == "histogram";
    Some((
        name,
        Metric {
            is_histogram,
            labels,
        },
    ))
}

/// A label and its values from `` `result`: done, failed ``; a description in words has no values.
fn label(text: &str) -> Option<(String, Vec<String>)> {
    let (name, values) = text.trim_start_matches('`').split_once("`: ")?;
    let values: Vec<String> = values.split(", ").map(str::to_owned).collect();
    let is_list = !values.iter().any(|value| value.contains(' '));
    Some((name.to_owned(), if is_list { values } else { Vec::new() }))
}

/// The settings, as `section.key`.
#[derive(Debug)]
pub(super) struct Settings(BTreeSet<String>);

impl Settings {
    /// Reads the headings of sections and the first cells of their rows.
    pub(super) fn read(workspace: &Workspace) -> Self {
        let text = workspace.text(Path::new(CONFIG));
        let (mut names, mut section) = (BTreeSet::new(), "");
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = heading.trim_matches(['`', '[', ']']);
                names.insert(section.to_owned());
            } else if let Some(key) = line
                .strip_prefix("| `")
                .and_then(|rest| rest.split('`').next())
            {
                names.insert(format!("{section}.{key}"));
            }
        }
        Self(names)
    }

    /// The fault of a code span such as `limits.throttle_from` or `[[front.list]]` that no setting has.
    pub(super) fn fault(&self, code: &str) -> Option<String> {
        let name = code.trim_matches(['[', ']']);
        let is_word = |part: &str| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let is_setting = name.split('.').all(is_word) && (name.contains('.') || name != code);
        (is_setting && !self.0.contains(name)).then(|| format!("no setting {name} in {CONFIG}"))
    }
}

/// The commands, as `vere-queue-list`.
#[derive(Debug)]
pub(super) struct Commands(BTreeSet<String>);

impl Commands {
    /// Reads the headings of the examples.
    pub(super) fn read(workspace: &Workspace) -> Self {
        let text = workspace.text(Path::new(EXAMPLES));
        let headings = text
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
        Self(headings.map(str::to_owned).collect())
    }

    /// The fault of a code span such as `vere queue look` that is no command.
    pub(super) fn fault(&self, code: &str) -> Option<String> {
        let words = code.split(' ').filter(|word| !word.starts_with('-'));
        let mut words = words.take_while(|word| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        });
        if words.next() != Some("vere") {
            return None;
        }
        let first = format!("vere-{}", words.next()?);
        let below = format!("{first}-");
        let has_commands = self.0.iter().any(|name| name.starts_with(&below));
        let full = match words.next() {
            Some(second) if has_commands => format!("{first}-{second}"),
            _ => first,
        };
        // A group of commands stands in the list by its commands.
        let is_known = self.0.contains(&full) || (has_commands && full.len() < below.len());
        (!is_known).then(|| format!("no command `{code}` in {EXAMPLES}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    fn metrics() -> Metrics {
        let text = "\
| metric | type | labels | meaning |
| `vere_a_total` | counter | `side`: server, client; `zone`: name in the settings; empty outside | A |
| `vere_t_seconds` | histogram |  | T |
";
        let (_folder, workspace) = made_of(&[(METRICS, text)]);
        Metrics::read(&workspace)
    }

    fn faults(expression: &str) -> Vec<String> {
        metrics().faults(&Usage::of(expression))
    }

    #[test]
    fn histograms_are_named_by_their_parts() {
        assert_eq!(
            faults("sum by (le) (vere_t_seconds_bucket{le=\"5\"}) / vere_t_seconds_count"),
            [""; 0]
        );
        assert!(faults("vere_t_seconds")[0].contains("a histogram"));
        assert_eq!(
            faults("vere_t_seconds_sum{le=\"5\"}"),
            ["no label le of vere_t_seconds_sum"]
        );
        assert_eq!(faults("vere_a_total_count").len(), 1);
    }

    #[test]
    fn values_of_lists_are_compared_and_descriptions_are_not() {
        assert_eq!(
            faults("vere_a_total{side=~\"server|client\",zone=\"any\",instance=~\"$instance\"}"),
            [""; 0]
        );
        let found = faults("vere_a_total{side=~\"server|peer\"}");
        assert_eq!(found, ["no side=\"peer\" of vere_a_total"]);
        assert_eq!(faults("sum by (node) (vere_a_total)").len(), 1);
    }

    #[test]
    fn settings_and_commands_are_told_from_other_code() {
        let config = "## `[[front.list]]`\n| `zone` | x |\n";
        let (_folder, workspace) = made_of(&[
            (CONFIG, config),
            (EXAMPLES, "[vere-queue-list]\n[vere-trace]\n"),
        ]);
        let settings = Settings::read(&workspace);
        for fine in [
            "front.list.zone",
            "[[front.list]]",
            "df -h",
            "LimitNOFILE",
            "systemctl reload vere",
        ] {
            assert_eq!(settings.fault(fine), None);
        }
        assert!(settings.fault("front.gone").is_some() && settings.fault("[gone]").is_some());
        let commands = Commands::read(&workspace);
        for fine in [
            "vere queue --x400 list",
            "vere trace ID",
            "vere queue",
            "journalctl -u vere",
            "vere queue list a.example",
        ] {
            assert_eq!(commands.fault(fine), None, "{fine}");
        }
        for wrong in ["vere queue look", "vere gone", "vere gone --json"] {
            assert!(commands.fault(wrong).is_some(), "{wrong}");
        }
    }
}
