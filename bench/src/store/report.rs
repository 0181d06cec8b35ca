//! The figures of all rounds, as rows with bars.

use serde_json::{Value, json};

use crate::machine::Machine;

/// Our own name among the systems.
pub(crate) const OURS: &str = "vere";

/// One figure of one round.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) system: &'static str,
    pub(crate) task: &'static str,
    pub(crate) value: f64,
    /// What was fetched, found or expunged: the same for every system, or they answer differently.
    pub(crate) count: Option<u64>,
}

/// How good ours must be.
#[derive(Debug, Clone, Copy)]
enum Bar {
    /// At most this part of the best peer's.
    AtMost(f64),
    /// At least so many times the best peer's.
    AtLeast(f64),
    /// At most this, whatever peers do.
    Below(f64),
}

impl Bar {
    fn text(self) -> String {
        match self {
            Self::AtMost(ratio) => format!("ratio <= {ratio}"),
            Self::AtLeast(ratio) => format!("ratio >= {ratio}"),
            Self::Below(value) => format!("value <= {value}"),
        }
    }

    fn holds(self, value: f64, ratio: Option<f64>) -> Option<bool> {
        match self {
            Self::AtMost(most) => ratio.map(|ratio| ratio <= most),
            Self::AtLeast(least) => ratio.map(|ratio| ratio >= least),
            Self::Below(most) => Some(value <= most),
        }
    }
}

/// What is measured of every system.
struct Task {
    name: &'static str,
    unit: &'static str,
    /// Whether more of it is better.
    more: bool,
    bar: Option<Bar>,
}

const fn less(name: &'static str, unit: &'static str, bar: Option<Bar>) -> Task {
    Task {
        name,
        unit,
        more: false,
        bar,
    }
}

const fn more(name: &'static str, unit: &'static str, bar: Option<Bar>) -> Task {
    Task {
        name,
        unit,
        more: true,
        bar,
    }
}

const TASKS: &[Task] = &[
    more("filled, 16 connections", "messages/s", None),
    less("disk", "MiB", None),
    less("first SELECT", "ms", Some(Bar::AtMost(1.0))),
    less("list", "ms", Some(Bar::AtMost(0.5))),
    less("list, CPU", "ms", None),
    less("four fields", "ms", Some(Bar::AtMost(0.5))),
    less("all headers", "ms", Some(Bar::AtMost(0.4))),
    less("FROM", "ms", Some(Bar::AtMost(0.2))),
    less("SUBJECT", "ms", Some(Bar::AtMost(0.2))),
    less("SENTSINCE", "ms", Some(Bar::AtMost(0.5))),
    less("TEXT absent", "ms", Some(Bar::Below(5.0))),
    less("TEXT 0.1 %", "ms", Some(Bar::AtMost(0.05))),
    less("TEXT 1 %", "ms", Some(Bar::AtMost(0.05))),
    less("TEXT 10 %", "ms", Some(Bar::AtMost(0.05))),
    less("TEXT 50 %", "ms", Some(Bar::AtMost(0.05))),
    less("BODY 0.1 %", "ms", Some(Bar::AtMost(0.05))),
    less("BODY 1 %", "ms", Some(Bar::AtMost(0.05))),
    less("BODY 10 %", "ms", Some(Bar::AtMost(0.05))),
    less("expunge 1 %", "ms", Some(Bar::AtMost(0.7))),
    less("expunge 20 %", "ms", Some(Bar::AtMost(0.7))),
    more(
        "APPEND, 1 connection",
        "messages/s",
        Some(Bar::AtLeast(1.2)),
    ),
    more(
        "APPEND, 10 connections",
        "messages/s",
        Some(Bar::AtLeast(4.0)),
    ),
    less("IDLE notice", "ms", Some(Bar::Below(1.0))),
    more("delivered to 15", "mailboxes/s", Some(Bar::AtLeast(5.0))),
    less(
        "written by delivery to 15",
        "KiB/message",
        Some(Bar::AtMost(0.1)),
    ),
    less("memory before login", "KiB", Some(Bar::Below(16.0))),
    less("memory of IDLE", "KiB", Some(Bar::Below(64.0))),
    less("all IDLE told", "ms", None),
];

/// Everything a run of the benchmark found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) quick: bool,
    pub(crate) seconds: f64,
    pub(crate) messages: usize,
    pub(crate) octets: u64,
    pub(crate) systems: Vec<&'static str>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) skipped: Vec<String>,
}

/// What one row of the table says of ours.
struct Verdict {
    peer: Option<(&'static str, f64)>,
    ratio: Option<f64>,
    ok: Option<bool>,
}

impl Report {
    fn median(&self, task: &str, system: &str) -> Option<f64> {
        let of = |figure: &&Figure| figure.task == task && figure.system == system;
        let mut values: Vec<f64> = self
            .figures
            .iter()
            .filter(of)
            .map(|one| one.value)
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        match values.len() {
            0 => None,
            length if length % 2 == 1 => Some(values[middle]),
            _ => Some(f64::midpoint(values[middle - 1], values[middle])),
        }
    }

    fn verdict(&self, task: &Task) -> Option<Verdict> {
        let value = self.median(task.name, OURS)?;
        let peers = self.systems.iter().filter(|system| **system != OURS);
        let peers = peers.filter_map(|system| Some((*system, self.median(task.name, system)?)));
        let peer = match task.more {
            true => peers.max_by(|one, other| one.1.total_cmp(&other.1)),
            false => peers.min_by(|one, other| one.1.total_cmp(&other.1)),
        };
        let ratio = peer.filter(|peer| peer.1 > 0.0).map(|peer| value / peer.1);
        let ok = task.bar.and_then(|bar| bar.holds(value, ratio));
        Some(Verdict { peer, ratio, ok })
    }

    /// Tasks in which systems answered with different counts.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in TASKS {
            let mut counts: Vec<(&str, u64)> = self
                .figures
                .iter()
                .filter(|figure| figure.task == task.name)
                .filter_map(|figure| Some((figure.system, figure.count?)))
                .collect();
            counts.dedup();
            counts.sort_unstable();
            counts.dedup();
            if counts
                .iter()
                .any(|(_, count)| Some(*count) != counts.first().map(|one| one.1))
            {
                let shown = counts
                    .iter()
                    .map(|(system, count)| format!("{system} {count}"));
                let shown: Vec<String> = shown.collect();
                lines.push(format!(
                    "{}: answers differ: {}",
                    task.name,
                    shown.join(", ")
                ));
            }
        }
        lines
    }

    /// The JSON of DESIGN section 7, with the single rounds and what was skipped besides.
    pub(crate) fn json(&self) -> Value {
        let mut rows = Vec::new();
        for task in TASKS {
            for system in &self.systems {
                rows.extend(self.row(task, system));
            }
        }
        let round = |figure: &Figure| {
            json!({
                "system": figure.system,
                "task": figure.task,
                "value": figure.value,
                "count": figure.count,
            })
        };
        json!({
            "bench": "store",
            "quick": self.quick,
            "seconds": self.seconds,
            "machine": self.machine.json(),
            "messages": self.messages,
            "octets": self.octets,
            "rows": rows,
            "differences": self.differences(),
            "rounds": self.figures.iter().map(round).collect::<Vec<_>>(),
            "skipped": self.skipped,
        })
    }

    fn row(&self, task: &Task, system: &str) -> Option<Value> {
        let value = self.median(task.name, system)?;
        let verdict = (system == OURS).then(|| self.verdict(task)).flatten();
        let peer = verdict.as_ref().and_then(|verdict| verdict.peer);
        let bar = task.bar.filter(|_| system == OURS);
        Some(json!({
            "name": format!("{system}: {}", task.name),
            "value": value,
            "unit": task.unit,
            "peer": peer.map(|peer| peer.0),
            "peer_value": peer.map(|peer| peer.1),
            "ratio": verdict.as_ref().and_then(|verdict| verdict.ratio),
            "bar": bar.map(Bar::text),
            "ok": verdict.and_then(|verdict| verdict.ok),
        }))
    }

    /// The cells of the table: name, a value for each system, the ratio, the bar.
    pub(crate) fn cells(&self) -> Vec<Vec<String>> {
        let mut head = vec!["task".to_owned()];
        head.extend(self.systems.iter().map(|system| (*system).to_owned()));
        head.extend(["ratio".to_owned(), "bar".to_owned()]);
        let mut rows = vec![head];
        for task in TASKS {
            let values: Vec<Option<f64>> = self
                .systems
                .iter()
                .map(|system| self.median(task.name, system))
                .collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![format!("{} [{}]", task.name, task.unit)];
            row.extend(values.into_iter().map(shown));
            let verdict = self.verdict(task);
            row.push(
                verdict
                    .as_ref()
                    .map_or_else(String::new, |verdict| shown(verdict.ratio)),
            );
            row.push(task.bar.map_or_else(String::new, |bar| {
                match verdict.and_then(|verdict| verdict.ok) {
                    Some(true) => format!("{}: ok", bar.text()),
                    Some(false) => format!("{}: MISSED", bar.text()),
                    None => format!("{}: no peer", bar.text()),
                }
            }));
            rows.push(row);
        }
        rows
    }

    /// A table for a terminal.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "store, {} messages of {} MiB, medians\n{}\n",
            self.messages,
            self.octets >> 20,
            self.machine.line()
        );
        for row in self.cells() {
            for (place, cell) in row.iter().enumerate() {
                let cell = match place {
                    0 => format!("{cell:<40}"),
                    _ if place + 1 == row.len() => format!("  {cell}"),
                    _ => format!("{cell:>17}"),
                };
                text.push_str(&cell);
            }
            text.push('\n');
        }
        for line in self.differences() {
            text.push_str(&format!("{line}\n"));
        }
        for line in &self.skipped {
            text.push_str(&format!("skipped: {line}\n"));
        }
        text
    }

    /// The figures as one page without outside parts.
    pub(crate) fn page(&self) -> String {
        use crate::page::{STYLE, escape};
        let mut page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>vere bench store</title>\
             <style>{STYLE}</style><h1>vere bench store</h1>\
             <p>A mailbox of {} messages ({} MiB); medians of the rounds, systems taking turns. {}.</p>\
             <table>",
            self.messages,
            self.octets >> 20,
            escape(&self.machine.line())
        );
        for row in self.cells() {
            page.push_str("<tr>");
            for cell in row {
                page.push_str(&format!("<td>{}</td>", escape(&cell)));
            }
            page.push_str("</tr>");
        }
        page.push_str("</table><ul>");
        for line in self.differences().iter().chain(&self.skipped) {
            page.push_str(&format!("<li>{}</li>", escape(line)));
        }
        page.push_str("</ul></html>\n");
        page
    }
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_judged_against_the_best_peer() {
        let figure = |system, task, value, count| Figure {
            system,
            task,
            value,
            count,
        };
        let report = Report {
            machine: Machine::describe("/".as_ref()),
            quick: true,
            seconds: 1.0,
            messages: 3,
            octets: 9,
            systems: vec!["vere", "a", "b"],
            figures: vec![
                figure("vere", "list", 40.0, Some(3)),
                figure("vere", "list", 60.0, Some(3)),
                figure("a", "list", 100.0, Some(3)),
                figure("b", "list", 900.0, Some(2)),
                figure("vere", "APPEND, 1 connection", 110.0, None),
                figure("a", "APPEND, 1 connection", 100.0, None),
                figure("vere", "IDLE notice", 0.2, None),
            ],
            skipped: Vec::new(),
        };
        let json = report.json();
        let row = |name: &str| {
            let rows = json["rows"].as_array().unwrap();
            rows.iter().find(|row| row["name"] == name).unwrap().clone()
        };
        let list = row("vere: list");
        assert_eq!((&list["peer"], &list["ratio"]), (&"a".into(), &0.5.into()));
        assert_eq!(list["ok"], true);
        assert_eq!(row("vere: APPEND, 1 connection")["ok"], false);
        assert_eq!(row("vere: IDLE notice")["ok"], true);
        assert_eq!(
            report.differences(),
            ["list: answers differ: a 3, b 2, vere 3"]
        );
        assert!(report.table().contains("MISSED"));
        assert!(report.page().contains("<td>list [ms]</td>"));
    }
}
