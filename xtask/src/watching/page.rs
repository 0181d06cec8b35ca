//! The page of all alarms.

use std::fmt::Write as _;

use super::rules::Alarm;

const HEAD: &str = "\
# Alarms

Generated from `packaging/prometheus/vere.rules.yml`; change that file, then run `cargo xtask generated --write`.

[guides/monitor.md](../guides/monitor.md#metrics-and-alarms) tells how to load the rules. *critical*: act now. *warning*: act today. *info*: look in
working hours. Each alarm has the annotations `summary`, `description` and `remedy`. Names in italics stand for the values of
an alarm.
";

/// Writes the page.
pub(super) fn written(alarms: &[Alarm]) -> String {
    let mut text = HEAD.to_owned();
    let mut group = "";
    for alarm in alarms {
        if alarm.group != group {
            group = &alarm.group;
            let _ = write!(text, "\n## {group}\n");
        }
        let after = match alarm.hold.as_str() {
            "" => String::new(),
            hold => format!(", after {hold}"),
        };
        let expression = alarm.expr.replace('\n', "\n    ");
        let _ = write!(
            text,
            "\n### {}\n\n*{}{after}.* {}.\n\n    {expression}\n\n{}\n\nWhat to do: {}\n",
            alarm.name,
            alarm.severity,
            alarm.summary,
            plain(&alarm.description),
            alarm.remedy
        );
    }
    text
}

/// A text with templates as names in italics: `{{ $labels.node }}` is *node*.
fn plain(description: &str) -> String {
    let mut text = String::new();
    for (before, template) in templates(description) {
        text.push_str(before);
        let value = template.contains("$value").then(|| "value".to_owned());
        if let Some(name) = shown_label(template).or(value) {
            let _ = write!(text, "*{name}*");
        }
    }
    let rest = description.rsplit("}}").next().unwrap_or(description);
    text.push_str(rest);
    text
}

/// The labels that the templates of a description show.
pub(super) fn labels(description: &str) -> Vec<String> {
    let shown = templates(description).filter_map(|(_, template)| shown_label(template));
    shown.collect()
}

/// The expressions that the templates of a description ask for.
pub(super) fn queries(description: &str) -> impl Iterator<Item = &str> {
    templates(description).filter_map(|(_, template)| {
        let with = template.trim().strip_prefix("with ")?;
        let (_, quoted) = with.split_once('"')?;
        quoted.rsplit_once('"').map(|(query, _)| query)
    })
}

/// The label of a template; a query and the end of a query have no label.
fn shown_label(template: &str) -> Option<String> {
    let template = template.trim();
    if template.starts_with("with ") || template == "end" {
        return None;
    }
    let named = template.strip_prefix("$labels.");
    let named = named.or_else(|| template.split("label \"").nth(1));
    let mut words = named?.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.next().map(str::to_owned)
}

/// Each template without its braces, and the text since the template before.
fn templates(description: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = description.split("}}");
    parts.filter_map(|part| part.split_once("{{"))
}

/// The contents of code spans.
pub(super) fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_become_names() {
        let text = "{{ $labels.node }} has {{ $value | printf \"%.0f\" }}.{{ with query \"a{i='{{x'\" }} By {{ . | first | label \"client\" }}.{{ end }} End";
        assert_eq!(plain("{{ $labels.node }}"), "*node*");
        assert_eq!(plain("none"), "none");
        assert_eq!(labels(text), ["node", "client"]);
        assert_eq!(queries(text).collect::<Vec<_>>(), ["a{i='{{x'"]);
        assert!(plain(text).starts_with("*node* has *value*."));
        assert!(plain(text).ends_with(" By *client*. End"));
    }

    #[test]
    fn an_alarm_is_a_heading_with_expression_and_remedy() {
        let alarm = Alarm {
            group: "Spool".to_owned(),
            name: "VereA".to_owned(),
            expr: "a\n  > 1".to_owned(),
            hold: "5m".to_owned(),
            severity: "info".to_owned(),
            summary: "A is high".to_owned(),
            description: "{{ $value }} of A".to_owned(),
            remedy: "`x`".to_owned(),
            ..Alarm::default()
        };
        let text = written(&[alarm.clone(), alarm]);
        let one = "\n### VereA\n\n*info, after 5m.* A is high.\n\n    a\n      > 1\n\n*value* of A\n\nWhat to do: `x`\n";
        assert!(text.ends_with(&format!("\n## Spool\n{one}{one}")), "{text}");
    }

    #[test]
    fn code_is_between_backticks() {
        let spans: Vec<&str> = code_spans("`a b`, then `c`").collect();
        assert_eq!(spans, ["a b", "c"]);
    }
}
