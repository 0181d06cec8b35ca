//! The figures of all rounds, as rows.

use serde_json::{Value, json};

use super::bars;
use super::case::Case;
use super::measure::{METRICS, Measurement, Metric, Target};
use crate::output::Header;
use crate::page;
use crate::plot::Bars;
use crate::row::{Row, median};
use crate::table::Table;

/// Everything a run of the benchmark found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) header: Header,
    pub(crate) cases: Vec<Case>,
    pub(crate) targets: Vec<Target>,
    pub(crate) measurements: Vec<Measurement>,
    /// Figures of ours alone.
    pub(crate) rows: Vec<Row>,
}

impl Report {
    /// The median of a metric over the rounds of a load.
    pub(crate) fn median(&self, metric: &Metric, target: &str, case: &str) -> Option<f64> {
        let of = |run: &&Measurement| run.target == target && run.case == case;
        median(self.measurements.iter().filter(of).map(metric.of))
    }

    /// The JSON of DESIGN section 7, with the single rounds and the skipped parts besides.
    pub(crate) fn json(&self) -> Value {
        let mut rows = Vec::new();
        for target in &self.targets {
            for case in &self.cases {
                for metric in METRICS {
                    rows.extend(self.row(metric, &target.name, &case.label));
                }
            }
        }
        rows.extend(bars::rows(self));
        rows.extend(self.rows.iter().cloned());
        let rounds = self.measurements.iter().map(round).collect();
        self.header.json(&rows, rounds)
    }

    fn row(&self, metric: &Metric, target: &str, case: &str) -> Option<Row> {
        let name = format!("{target}: {}, {case}", metric.name);
        let value = self.median(metric, target, case)?;
        Some(Row::new(name, value, metric.unit))
    }

    /// A table for a terminal.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "gateway, 70 % 1 KB and 30 % 10 KB where nothing else is said\n{}\n",
            self.header.machine.line()
        );
        text.push_str(&self.figures().text());
        for row in &self.rows {
            text.push_str(&format!("{}\n", row.line()));
        }
        for verdict in self.verdicts() {
            text.push_str(&format!("{verdict}\n"));
        }
        text
    }

    /// A line for each system and load with figures.
    pub(crate) fn figures(&self) -> Table {
        let metrics = METRICS.iter();
        let heads = metrics.map(|metric| format!("{} [{}]", metric.name, metric.unit));
        let names = ["system", "load"].map(str::to_owned);
        let mut table = Table::new(names.into_iter().chain(heads));
        for target in &self.targets {
            for case in &self.cases {
                let values = METRICS
                    .iter()
                    .map(|metric| self.median(metric, &target.name, &case.label));
                let values: Vec<_> = values.collect();
                if values.iter().all(Option::is_none) {
                    continue;
                }
                let shown = |value: Option<f64>| {
                    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
                };
                let mut row = vec![target.name.clone(), case.label.clone()];
                row.extend(values.into_iter().map(shown));
                table.push(row);
            }
        }
        table
    }

    /// A line for each bar, failure or skipped part.
    pub(crate) fn verdicts(&self) -> Vec<String> {
        let mut lines: Vec<String> = bars::rows(self).iter().map(Row::line).collect();
        let troubled = self
            .measurements
            .iter()
            .filter(|run| run.missing + run.doubled > 0);
        lines.extend(troubled.map(|run| format!("trouble: {}", run.line())));
        lines.extend(self.header.skipped_lines());
        lines
    }

    /// The figures as a page without external resources.
    pub(crate) fn page(&self) -> String {
        let mut page = page::begin(
            "vere bench gateway",
            &format!(
                "Messages of 1 KB (70 %) and 10 KB (30 %) relayed to a sink; medians of the rounds, \
                 systems taking turns. CPU is user and system time of all processes of a system. {}.",
                self.header.machine.line()
            ),
        );
        page::list(self.verdicts(), &mut page);
        for metric in METRICS {
            self.plot(metric).draw(&mut page);
        }
        self.figures().draw(&mut page);
        page + page::END
    }

    /// Bars of a metric: a group for each load, a bar for each system.
    fn plot(&self, metric: &Metric) -> Bars {
        let group = |case: &Case| {
            let values = self.targets.iter();
            let values = values.map(|target| self.median(metric, &target.name, &case.label));
            (case.label.clone(), values.collect())
        };
        let system = |target: &Target| {
            let limit = if target.is_limit { " (limit)" } else { "" };
            format!("{}{limit}", target.name)
        };
        Bars {
            title: metric.name.to_owned(),
            unit: metric.unit,
            systems: self.targets.iter().map(system).collect(),
            groups: self.cases.iter().map(group).collect(),
        }
    }
}

fn round(run: &Measurement) -> Value {
    let mut value = json!({
        "target": run.target,
        "load": run.case,
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

#[cfg(test)]
mod tests {
    use super::{Header, Report};
    use crate::gateway::case::Case;
    use crate::gateway::measure::{Measurement, Target};
    use crate::process::CpuAccount;

    fn run(target: &str, case: &str, cpu: f64, delivered: f64) -> Measurement {
        Measurement {
            target: target.to_owned(),
            case: case.to_owned(),
            sessions: 50,
            acked: 1,
            delivered_per_second: delivered,
            cpu_us_per_message: cpu,
            reply_p50_us: 1.0,
            reply_p99_us: 2.0,
            arrival_p99_ms: 3.0,
            failures: 0,
            missing: 0,
            doubled: 0,
        }
    }

    fn report(measurements: Vec<Measurement>) -> Report {
        let target = |name: &str| Target {
            name: name.to_owned(),
            address: ([127, 0, 0, 1], 9).into(),
            account: CpuAccount::Tree(1),
            send: std::time::Duration::ZERO,
            is_limit: false,
        };
        Report {
            header: Header::new("gateway", true, "/".as_ref()),
            cases: vec![Case::mix(50), Case::small(50), Case::at_rate(50, 100.0)],
            targets: vec![target("postfix tuned"), target("vere")],
            measurements,
            rows: Vec::new(),
        }
    }

    /// The verdict of the row of a name.
    fn ok(report: &Report, name: &str) -> Option<bool> {
        let json = report.json();
        let rows = json["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name)?;
        row["ok"].as_bool()
    }

    #[test]
    fn a_bar_is_judged_by_the_ratio_of_medians() {
        let mix = "50 sessions";
        for (ours, expected) in [(100.0, true), (110.0, false)] {
            let report = report(vec![
                run("postfix tuned", mix, 1000.0, 100.0),
                run("vere", mix, 9000.0, 100.0),
                run("vere", mix, ours, 100.0),
                run("vere", mix, 1.0, 100.0),
            ]);
            let name = "vere: CPU, 50 sessions, beside postfix tuned";
            assert_eq!(ok(&report, name), Some(expected));
            assert_eq!(report.verdicts()[0].ends_with("MISSED)"), !expected);
        }
    }

    #[test]
    fn the_better_durable_rival_counts_and_memory_does_not() {
        let small = "1 KB, 50 sessions";
        let report = report(vec![
            run("postfix tuned", small, 10.0, 1_000.0),
            run("postfix as shipped", small, 10.0, 2_000.0),
            run("postfix tuned, tmpfs", small, 10.0, 9_000.0),
            run("no-op relay", small, 10.0, 30_000.0),
            run("vere", small, 10.0, 12_000.0),
        ]);
        let name = format!("vere: delivered, {small}");
        let beside = |peer: &str| ok(&report, &format!("{name}, beside {peer}"));
        assert_eq!(beside("postfix as shipped"), Some(true));
        assert_eq!(beside("postfix tuned"), None);
        assert_eq!(beside("no-op relay"), Some(false));
        assert_eq!(
            ok(&report, &format!("vere: reply p99, {small}")),
            None,
            "figure and bar"
        );
    }

    #[test]
    fn half_load_has_a_bar_of_its_own() {
        let report = report(vec![run("vere", "half load, 50 sessions", 1.0, 1.0)]);
        let lines = report.verdicts();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].starts_with("vere: reply p99, half load"),
            "{lines:?}"
        );
    }
}
