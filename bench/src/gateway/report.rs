//! The figures of all rounds, as rows.

use serde_json::{Value, json};

use super::measure::{Measurement, Target};
use crate::machine::Machine;

/// Our own name among the systems, and that of the one the bars are about.
const OURS: &str = "vere";
const RIVAL: &str = "postfix tuned";

/// CPU per relayed message may be this part of Postfix's.
const CPU_RATIO_MAX: f64 = 0.1;

/// One figure that is measured for every system and number of sessions.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) of: fn(&Measurement) -> f64,
    /// The most that ours may be of the rival's.
    ratio_max: Option<f64>,
}

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        name: "delivered",
        unit: "messages/s",
        of: |run| run.delivered_per_second,
        ratio_max: None,
    },
    Metric {
        name: "CPU",
        unit: "us/message",
        of: |run| run.cpu_us_per_message,
        ratio_max: Some(CPU_RATIO_MAX),
    },
    Metric {
        name: "reply p50",
        unit: "us",
        of: |run| run.reply_p50_us,
        ratio_max: None,
    },
    Metric {
        name: "reply p99",
        unit: "us",
        of: |run| run.reply_p99_us,
        ratio_max: None,
    },
    Metric {
        name: "arrival p99",
        unit: "ms",
        of: |run| run.arrival_p99_ms,
        ratio_max: None,
    },
];

/// Everything a run of the benchmark found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) seconds: f64,
    pub(crate) sessions: Vec<usize>,
    pub(crate) targets: Vec<Target>,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) skipped: Vec<String>,
}

impl Report {
    /// The median of a metric over the rounds.
    pub(crate) fn median(&self, metric: &Metric, target: &str, sessions: usize) -> Option<f64> {
        let mut values: Vec<f64> = self
            .measurements
            .iter()
            .filter(|run| run.target == target && run.sessions == sessions)
            .map(metric.of)
            .collect();
        median(&mut values)
    }

    /// The JSON of DESIGN section 7, with the single rounds and what was skipped besides.
    pub(crate) fn json(&self) -> Value {
        let mut rows = Vec::new();
        for target in &self.targets {
            for sessions in &self.sessions {
                for metric in METRICS {
                    rows.extend(self.row(metric, &target.name, *sessions));
                }
            }
        }
        let rounds: Vec<Value> = self.measurements.iter().map(round).collect();
        json!({
            "bench": "gateway",
            "quick": self.quick,
            "seconds": self.seconds,
            "machine": self.machine.json(),
            "rows": rows,
            "rounds": rounds,
            "skipped": self.skipped,
        })
    }

    fn row(&self, metric: &Metric, target: &str, sessions: usize) -> Option<Value> {
        let value = self.median(metric, target, sessions)?;
        let peer = (target == OURS)
            .then(|| self.median(metric, RIVAL, sessions))
            .flatten();
        let ratio = peer.filter(|peer| *peer > 0.0).map(|peer| value / peer);
        let bar = metric.ratio_max.filter(|_| target == OURS);
        Some(json!({
            "name": format!("{target}: {}, {sessions} sessions", metric.name),
            "value": value,
            "unit": metric.unit,
            "peer": peer.map(|_| RIVAL),
            "peer_value": peer,
            "ratio": ratio,
            "bar": bar.map(|bar| format!("ratio <= {bar}")),
            "ok": bar.zip(ratio).map(|(bar, ratio)| ratio <= bar),
        }))
    }

    /// A table for a terminal.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "gateway, 70 % 1 KB and 30 % 10 KB\n{}\n",
            self.machine.line()
        );
        text.push_str(&format!("{:<20}{:>9}", "", "sessions"));
        for metric in METRICS {
            text.push_str(&format!(
                "{:>24}",
                format!("{} [{}]", metric.name, metric.unit)
            ));
        }
        text.push('\n');
        for target in &self.targets {
            for sessions in &self.sessions {
                text.push_str(&format!("{:<20}{sessions:>9}", target.name));
                for metric in METRICS {
                    let value = self.median(metric, &target.name, *sessions);
                    let value = value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
                    text.push_str(&format!("{value:>24}"));
                }
                text.push('\n');
            }
        }
        for verdict in self.verdicts() {
            text.push_str(&format!("{verdict}\n"));
        }
        text
    }

    /// One line for each bar, trouble or skip.
    pub(crate) fn verdicts(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for sessions in &self.sessions {
            for metric in METRICS {
                let Some(bar) = metric.ratio_max else {
                    continue;
                };
                let ours = self.median(metric, OURS, *sessions);
                let rival = self.median(metric, RIVAL, *sessions);
                if let Some((ours, rival)) = ours.zip(rival).filter(|(_, rival)| *rival > 0.0) {
                    let ratio = ours / rival;
                    let verdict = if ratio <= bar { "ok" } else { "MISSED" };
                    lines.push(format!(
                        "{} per message with {sessions} sessions: {ratio:.3} of {RIVAL} \
                         (bar {bar}): {verdict}",
                        metric.name
                    ));
                }
            }
        }
        let troubled = self
            .measurements
            .iter()
            .filter(|run| run.missing + run.doubled > 0);
        lines.extend(troubled.map(|run| format!("trouble: {}", run.line())));
        lines.extend(
            self.skipped
                .iter()
                .map(|skipped| format!("skipped: {skipped}")),
        );
        lines
    }
}

fn round(run: &Measurement) -> Value {
    let mut value = json!({
        "target": run.target,
        "sessions": run.sessions,
        "acked": run.acked,
        "failures": run.failures,
        "missing": run.missing,
        "doubled": run.doubled,
    });
    for metric in METRICS {
        value[metric.name] = (metric.of)(run).into();
    }
    value
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        length if length % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, median};
    use crate::gateway::measure::{Measurement, Target};
    use crate::machine::Machine;
    use crate::process::CpuAccount;

    fn run(target: &str, cpu: f64) -> Measurement {
        Measurement {
            target: target.to_owned(),
            sessions: 10,
            acked: 1,
            delivered_per_second: 100.0,
            cpu_us_per_message: cpu,
            reply_p50_us: 1.0,
            reply_p99_us: 2.0,
            arrival_p99_ms: 3.0,
            failures: 0,
            missing: 0,
            doubled: 0,
        }
    }

    fn report(ours: f64) -> Report {
        let target = |name: &str| Target {
            name: name.to_owned(),
            address: ([127, 0, 0, 1], 9).into(),
            account: CpuAccount::Tree(1),
            send: std::time::Duration::ZERO,
            is_limit: false,
        };
        Report {
            machine: Machine::describe("/".as_ref()),
            quick: true,
            seconds: 1.0,
            sessions: vec![10],
            targets: vec![target("postfix tuned"), target("vere")],
            measurements: vec![
                run("postfix tuned", 1000.0),
                run("vere", 9000.0),
                run("vere", ours),
                run("vere", 1.0),
            ],
            skipped: Vec::new(),
        }
    }

    #[test]
    fn a_bar_is_judged_by_the_ratio_of_medians() {
        for (ours, ok) in [(100.0, true), (110.0, false)] {
            let report = report(ours);
            let json = report.json();
            let rows = json["rows"].as_array().unwrap();
            let row = rows
                .iter()
                .find(|row| row["name"] == "vere: CPU, 10 sessions")
                .unwrap();
            assert_eq!(row["value"], ours);
            assert_eq!(row["peer"], "postfix tuned");
            assert_eq!(row["peer_value"], 1000.0);
            assert_eq!(row["ratio"], ours / 1000.0);
            assert_eq!(row["bar"], "ratio <= 0.1");
            assert_eq!(row["ok"], ok);
            let row = rows
                .iter()
                .find(|row| row["name"] == "vere: delivered, 10 sessions");
            assert!(row.unwrap()["ok"].is_null());
            assert_eq!(report.verdicts()[0].ends_with("MISSED"), !ok);
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0]), Some(2.5));
    }
}
