//! The alarms for Prometheus and the dashboards of Grafana below `packaging` agree with the metrics of the program.
//!
//! Every metric, label and label value in an expression stands in `docs/internals/metrics.md`; settings and commands that
//! a remedy names exist; every alarm has a test that fires and a test that does not. promtool, where installed, checks
//! the syntax of the rules and runs the tests.

mod dashboard;
mod expression;
mod known;
mod page;
mod promtool;
mod rules;

use std::collections::BTreeSet;
use std::path::Path;

use crate::finding::{Finding, Outcome};
use crate::workspace::Workspace;

use expression::Usage;
use known::{Commands, Metrics, Settings};
use rules::Alarm;

/// The alarms, relative to the root.
const RULES: &str = "packaging/prometheus/vere.rules.yml";
/// The tests of the alarms, as promtool runs them: minutes and hours, and days in longer steps.
const TESTS: [&str; 2] = [
    "packaging/prometheus/vere.rules.test.yml",
    "packaging/prometheus/vere.rules.days.test.yml",
];

/// What an alarm may demand of an operator: now, today, in working hours.
const SEVERITIES: [&str; 3] = ["critical", "warning", "info"];

/// Compares rules and dashboards with metrics, settings and commands, then runs promtool.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let metrics = Metrics::read(workspace);
    let mut findings = alarms(workspace, &metrics);
    findings.extend(dashboard::check_all(workspace, &metrics));
    let promtool = promtool::run(workspace, RULES, &TESTS);
    match promtool {
        Outcome::Failed(more) => findings.extend(more),
        skipped if findings.is_empty() => return skipped,
        _ => {}
    }
    findings.into()
}

/// The page of all alarms, `docs/reference/alarms.md`.
///
/// # Errors
/// When the rules cannot be read.
pub(crate) fn alarm_page(workspace: &Workspace) -> Result<String, String> {
    let alarms = rules::read(&workspace.text(Path::new(RULES)));
    let alarms = alarms.map_err(|(line, what)| format!("{RULES}:{line}: {what}"))?;
    Ok(page::written(&alarms))
}

fn alarms(workspace: &Workspace, metrics: &Metrics) -> Vec<Finding> {
    let alarms = match rules::read(&workspace.text(Path::new(RULES))) {
        Ok(alarms) => alarms,
        Err((line, what)) => return vec![Finding::new(RULES, line, what)],
    };
    let (settings, commands) = (Settings::read(workspace), Commands::read(workspace));
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    for alarm in &alarms {
        let mut faults = form(alarm);
        if !names.insert(&alarm.name) {
            faults.push("the name stands here a second time".to_owned());
        }
        let mut usage = Usage::of(&alarm.expr);
        faults.extend(metrics.faults(&usage));
        for query in page::queries(&alarm.description) {
            let asked = Usage::of(query);
            faults.extend(metrics.faults(&asked));
            usage.selected.extend(asked.selected);
        }
        for label in page::labels(&alarm.description) {
            if !metrics.has_label(&usage, &label) {
                faults.push(format!(
                    "the description has the label {label}, which no metric of the alarm has"
                ));
            }
        }
        for code in page::code_spans(&alarm.remedy) {
            faults.extend(settings.fault(code));
            faults.extend(commands.fault(code));
        }
        let place = |what| Finding::new(RULES, alarm.line, format!("{}: {what}", alarm.name));
        findings.extend(faults.into_iter().map(place));
    }
    let tests = TESTS.map(|file| workspace.text(Path::new(file))).concat();
    findings.extend(untested(&alarms, &tests));
    findings
}

/// The form that pages and people rely on.
fn form(alarm: &Alarm) -> Vec<String> {
    let mut faults = Vec::new();
    if !alarm.name.starts_with("Vere") {
        faults.push("the name does not begin with Vere".to_owned());
    }
    if !SEVERITIES.contains(&alarm.severity.as_str()) {
        let known = SEVERITIES.join(", ");
        faults.push(format!(
            "the severity is \"{}\", expected {known}",
            alarm.severity
        ));
    }
    for (key, text) in [
        ("expr", &alarm.expr),
        ("summary", &alarm.summary),
        ("description", &alarm.description),
        ("remedy", &alarm.remedy),
    ] {
        if text.is_empty() {
            faults.push(format!("there is no {key}"));
        }
    }
    if alarm.summary.contains("{{") {
        faults.push("the summary has a template; values belong into the description".to_owned());
    }
    faults
}

/// Alarms without a firing test, or without a silent test.
fn untested(alarms: &[Alarm], tests: &str) -> Vec<Finding> {
    let (mut firing, mut silent) = (BTreeSet::new(), BTreeSet::new());
    let mut name = "";
    for line in tests.lines().map(str::trim) {
        let line = line.strip_prefix("- ").unwrap_or(line);
        if let Some(tested) = line.strip_prefix("alertname:") {
            name = tested.trim();
        } else if line == "exp_alerts: []" {
            silent.insert(name);
        } else if line == "exp_alerts:" {
            firing.insert(name);
        }
    }
    let mut findings = Vec::new();
    for alarm in alarms {
        for (tested, what) in [(&firing, "fires"), (&silent, "does not fire")] {
            if !tested.contains(alarm.name.as_str()) {
                let what = format!("no test in which {} {what}", alarm.name);
                findings.push(Finding::new(TESTS[0], 0, what));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::made_of;

    const METRICS: &str = "\
| `vere_queue_messages` | gauge |  | Messages that wait |
| `vere_smtp_replies_total` | counter | `class`: 2, 3, 4, 5 | Replies |
";
    const CONFIG: &str = "## `[limits]`\n| `throttle_from` | a number |\n";
    const EXAMPLES: &str = "[vere-queue]\n[vere-queue-list]\n[vere-trace]\n";

    fn rule(name: &str, expr: &str, severity: &str, description: &str, remedy: &str) -> String {
        format!(
            "      - alert: {name}\n        expr: {expr}\n        labels:\n          severity: {severity}\n        \
             annotations:\n          summary: \"Short\"\n          description: \"{description}\"\n          \
             remedy: \"{remedy}\"\n"
        )
    }

    fn faults(rule: &str, tests: &str) -> Vec<String> {
        let rules = format!("groups:\n  - name: Queues\n    rules:\n{rule}");
        let (_folder, workspace) = made_of(&[
            (RULES, &rules),
            (TESTS[0], tests),
            ("docs/internals/metrics.md", METRICS),
            ("docs/reference/config.md", CONFIG),
            ("crates/app/cli/src/examples.txt", EXAMPLES),
        ]);
        let findings = alarms(&workspace, &Metrics::read(&workspace));
        findings.iter().map(ToString::to_string).collect()
    }

    const TESTED: &str = "- alertname: VereX\n  exp_alerts: []\n- alertname: VereX\n  exp_alerts:\n    - exp_labels:\n";

    #[test]
    fn a_rule_of_known_names_passes() {
        let rule = rule(
            "VereX",
            "sum by (instance) (rate(vere_smtp_replies_total{class=\"4\"}[5m])) > 1",
            "warning",
            "{{ $labels.instance }} has {{ $value }}",
            "`vere queue list` and `limits.throttle_from`",
        );
        assert_eq!(faults(&rule, TESTED), [""; 0]);
    }

    #[test]
    fn each_unknown_name_is_a_finding() {
        for (expr, severity, description, remedy, found) in [
            (
                "vere_queue_gone > 1",
                "info",
                "x",
                "y",
                "no metric vere_queue_gone",
            ),
            (
                "vere_queue_messages{node=\"a\"} > 1",
                "info",
                "x",
                "y",
                "no label node",
            ),
            (
                "vere_smtp_replies_total{class=\"6\"} > 1",
                "info",
                "x",
                "y",
                "no class=\"6\"",
            ),
            (
                "vere_queue_messages > 1",
                "urgent",
                "x",
                "y",
                "severity is \"urgent\"",
            ),
            (
                "vere_queue_messages > 1",
                "info",
                "{{ $labels.node }}",
                "y",
                "the label node",
            ),
            (
                "vere_queue_messages > 1",
                "info",
                "x",
                "`limits.gone`",
                "no setting limits.gone",
            ),
            (
                "vere_queue_messages > 1",
                "info",
                "x",
                "`vere queue look`",
                "no command",
            ),
            ("vere_queue_messages > 1", "info", "", "y", "no description"),
        ] {
            let rule = rule("VereX", expr, severity, description, remedy);
            let faults = faults(&rule, TESTED);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].contains(found), "{faults:?} lacks {found}");
            assert!(faults[0].starts_with(&format!("{RULES}:4: VereX: ")));
        }
    }

    #[test]
    fn an_alarm_needs_a_test_of_both_kinds() {
        let rule = rule("VereX", "vere_queue_messages > 1", "info", "x", "y");
        assert_eq!(faults(&rule, "").len(), 2);
        let found = faults(&rule, "alertname: VereX\nexp_alerts: []\n");
        assert!(
            found[0].ends_with("no test in which VereX fires"),
            "{found:?}"
        );
    }

    #[test]
    fn the_real_rules_and_dashboards_are_in_order() {
        let workspace = Workspace::find().unwrap();
        let metrics = Metrics::read(&workspace);
        let mut findings = alarms(&workspace, &metrics);
        findings.extend(dashboard::check_all(&workspace, &metrics));
        assert_eq!(findings, []);
    }
}
