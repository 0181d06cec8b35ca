//! The figures of all rounds, as rows.

use serde_json::{Value, json};

use super::systems::XAPIAN;
use super::table::{Beside, DELIVERY_TASKS, TASKS, Task};
use crate::output::Header;
use crate::peer::OURS;
use crate::row::{Bar, Row, median};
use crate::table::Table;

/// Our store with as many messages as a system that has only the first messages.
pub(crate) const PART: &str = "vere, part";

/// The least share of common results of two systems that are compared.
const AGREEMENT: f64 = 0.95;

/// One figure of one round.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) system: &'static str,
    pub(crate) task: &'static str,
    pub(crate) value: f64,
    /// The number of messages fetched, found or expunged: equal for every system, or the answers differ.
    pub(crate) count: Option<u64>,
    /// User and system time, in milliseconds.
    pub(crate) cpu: Option<f64>,
}

impl Figure {
    /// A figure without a count and without CPU time.
    pub(crate) const fn new(system: &'static str, task: &'static str, value: f64) -> Self {
        Self {
            system,
            task,
            value,
            count: None,
            cpu: None,
        }
    }
}

/// The messages found by a system, by number.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) system: &'static str,
    pub(crate) task: &'static str,
    /// Sorted.
    pub(crate) hits: Vec<u32>,
}

/// Everything a run of the benchmark found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) header: Header,
    pub(crate) messages: usize,
    /// Messages of [`XAPIAN`] and [`PART`], where both have only the first messages.
    pub(crate) few: Option<usize>,
    pub(crate) octets: u64,
    pub(crate) systems: Vec<&'static str>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) answers: Vec<Answer>,
    /// Whether the run was complete.
    pub(crate) complete: bool,
}

impl Report {
    /// The median of a figure over the rounds.
    pub(crate) fn median(&self, task: &str, system: &str) -> Option<f64> {
        let of = |figure: &&Figure| figure.task == task && figure.system == system;
        median(self.figures.iter().filter(of).map(|one| one.value))
    }

    /// The median of the CPU time of a task, in milliseconds.
    pub(crate) fn cpu(&self, task: &str, system: &str) -> Option<f64> {
        let of = |figure: &&Figure| figure.task == task && figure.system == system;
        median(self.figures.iter().filter(of).filter_map(|one| one.cpu))
    }

    /// The peer of the comparison with our store.
    fn peer(&self, task: &Task) -> Option<(String, f64)> {
        let peers = self.systems.iter().filter(|system| match task.beside {
            _ if **system == OURS || self.is_partial(system) => false,
            Beside::Best => true,
            Beside::Exact => **system != XAPIAN,
            Beside::Only(name) => **system == name,
        });
        let peers = peers.filter_map(|name| Some((*name, self.median(task.name, name)?)));
        let peer = match task.more {
            true => peers.max_by(|one, other| one.1.total_cmp(&other.1)),
            false => peers.min_by(|one, other| one.1.total_cmp(&other.1)),
        };
        peer.map(|(name, value)| (name.to_owned(), value))
    }

    fn row(&self, task: &Task, system: &str) -> Option<Row> {
        let is_ours = system == OURS;
        let value = self.median(task.name, system)?;
        let row = Row::new(format!("{system}: {}", task.name), value, task.unit);
        let peer = is_ours.then(|| self.peer(task)).flatten();
        Some(row.beside(peer).bar(task.bar.filter(|_| is_ours)))
    }

    /// Our store beside the peer that finds only words, where both find the same messages.
    fn beside_xapian(&self, task: &Task) -> Option<Row> {
        if task.beside != Beside::Exact || self.agreement(task.name)? < AGREEMENT {
            return None;
        }
        let of = self
            .few
            .map_or_else(String::new, |few| format!(" of {few} messages"));
        let name = format!("{OURS}: {}{of}, beside {XAPIAN}", task.name);
        let ours = self.median(task.name, self.own_beside_xapian())?;
        let peer = (XAPIAN.to_owned(), self.median(task.name, XAPIAN)?);
        let row = Row::new(name, ours, task.unit).beside(peer);
        Some(row.bar(Bar::RatioMax(1.0)))
    }

    /// The figures of our store for the comparison with Cyrus with Xapian.
    const fn own_beside_xapian(&self) -> &'static str {
        if self.few.is_some() { PART } else { OURS }
    }

    /// Whether a system has the first messages only.
    fn is_partial(&self, system: &str) -> bool {
        self.few.is_some() && matches!(system, PART | XAPIAN)
    }

    /// The name of our figures with the same messages as `system`.
    fn own_beside(&self, system: &str) -> &'static str {
        if self.is_partial(system) { PART } else { OURS }
    }

    fn hits(&self, task: &str, system: &str) -> Option<&[u32]> {
        let of = |answer: &&Answer| answer.task == task && answer.system == system;
        self.answers.iter().find(of).map(|answer| &*answer.hits)
    }

    /// The share of common results of our store and Cyrus with Xapian.
    fn agreement(&self, task: &str) -> Option<f64> {
        let (ours, theirs) = (
            self.hits(task, self.own_beside_xapian())?,
            self.hits(task, XAPIAN)?,
        );
        let (only_ours, only_theirs) = (missing(ours, theirs).len(), missing(theirs, ours).len());
        let either = ours.len() + only_theirs;
        match either {
            0 => Some(1.0),
            either => Some((ours.len() - only_ours) as f64 / either as f64),
        }
    }

    /// All rows.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for task in TASKS.iter().chain(DELIVERY_TASKS) {
            rows.extend(self.systems.iter().filter_map(|name| self.row(task, name)));
            rows.extend(self.beside_xapian(task));
        }
        rows
    }

    /// Tasks whose counts differ between systems, or whose found messages differ from our store's.
    pub(crate) fn differences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for task in TASKS {
            lines.extend(self.different_counts(task.name, false));
            lines.extend(self.different_counts(task.name, true));
            let of_task = |answer: &&Answer| answer.task == task.name;
            lines.extend(self.answers.iter().filter(of_task).filter_map(|answer| {
                let ours = self.hits(task.name, self.own_beside(answer.system))?;
                different_hits(answer, ours)
            }));
        }
        lines
    }

    /// Different counts among systems with all messages, or among systems with the first messages.
    fn different_counts(&self, task: &str, partial: bool) -> Option<String> {
        let of = |one: &&Figure| one.task == task && self.is_partial(one.system) == partial;
        let of_task = self.figures.iter().filter(of);
        let counts = of_task.filter_map(|figure| Some((figure.system, figure.count?)));
        let mut counts: Vec<(&str, u64)> = counts.collect();
        counts.sort_unstable();
        counts.dedup();
        let first = counts.first()?.1;
        if counts.iter().all(|(_, count)| *count == first) {
            return None;
        }
        let shown = counts
            .iter()
            .map(|(system, count)| format!("{system} {count}"));
        let shown: Vec<String> = shown.collect();
        Some(format!("{task}: answers differ: {}", shown.join(", ")))
    }

    /// The JSON of DESIGN section 7, with the single rounds and the skipped parts besides.
    pub(crate) fn json(&self) -> Value {
        let round = |figure: &Figure| {
            json!({
                "system": figure.system,
                "task": figure.task,
                "value": figure.value,
                "count": figure.count,
                "cpu_ms": figure.cpu,
            })
        };
        let rounds = self.figures.iter().map(round).collect();
        let mut json = self.header.json(&self.rows(), rounds);
        json["messages"] = self.messages.into();
        json["octets"] = self.octets.into();
        json["complete"] = self.complete.into();
        json["messages_of_part"] = self.few.into();
        json["differences"] = self.differences().into();
        json
    }

    /// The tables: name, a value for each system, the ratio, the bar.
    pub(crate) fn tables(&self) -> impl Iterator<Item = Table> {
        let all = [TASKS, DELIVERY_TASKS].map(|tasks| self.table_of(tasks));
        all.into_iter().filter(|table| !table.is_empty())
    }

    fn table_of(&self, tasks: &[Task]) -> Table {
        let systems = self.systems_of(tasks);
        let mut table = Table::new(head(&systems, &["ratio", "bar"]));
        for task in tasks {
            let name = format!("{} [{}]", task.name, task.unit);
            let Some(mut cells) = values(name, &systems, |name| self.median(task.name, name))
            else {
                continue;
            };
            let ours = self.row(task, OURS);
            cells.push(shown(ours.as_ref().and_then(Row::ratio)));
            cells.push(ours.as_ref().map_or_else(String::new, Row::verdict));
            table.push(cells);
        }
        table
    }

    /// The table of CPU time, in milliseconds.
    pub(crate) fn cpu_table(&self) -> Table {
        let systems = self.systems_of(TASKS);
        let mut table = Table::new(head(&systems, &[]));
        for task in TASKS {
            let name = task.name.to_owned();
            if let Some(row) = values(name, &systems, |name| self.cpu(task.name, name)) {
                table.push(row);
            }
        }
        table
    }

    /// The systems with a figure of these tasks.
    fn systems_of(&self, tasks: &[Task]) -> Vec<&'static str> {
        let has = |name: &&&'static str| {
            let of = |figure: &Figure| {
                figure.system == **name && tasks.iter().any(|task| task.name == figure.task)
            };
            self.figures.iter().any(of)
        };
        self.systems.iter().filter(has).copied().collect()
    }

    /// Remarks beside the table: our store beside Xapian, different answers, skipped parts.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let beside = TASKS.iter().filter_map(|task| self.beside_xapian(task));
        let mut lines: Vec<String> = beside
            .map(|row| format!("{}: {} ({})", row.name, shown(row.ratio()), row.verdict()))
            .collect();
        lines.extend(self.differences());
        lines.extend(self.header.skipped_lines());
        lines
    }

    /// A table for a terminal.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "{}store, {} messages of {} MiB, medians\n{}\n",
            if self.complete { "" } else { "INCOMPLETE: " },
            self.messages,
            self.octets >> 20,
            self.header.machine.line()
        );
        for table in self.tables() {
            text.push_str(&table.text());
        }
        for line in self.remarks() {
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

fn head(systems: &[&str], others: &[&str]) -> Vec<String> {
    let cells = std::iter::once(&"task").chain(systems).chain(others);
    cells.map(|cell| (*cell).to_owned()).collect()
}

/// A name and the values of all systems, if at least a single system has a value.
fn values(name: String, systems: &[&str], of: impl Fn(&str) -> Option<f64>) -> Option<Vec<String>> {
    let values: Vec<Option<f64>> = systems.iter().map(|system| of(system)).collect();
    let known = values.iter().any(Option::is_some);
    known.then(|| {
        std::iter::once(name)
            .chain(values.into_iter().map(shown))
            .collect()
    })
}

/// The difference of a system's answer to our answer, with the first messages found by only one system.
fn different_hits(answer: &Answer, ours: &[u32]) -> Option<String> {
    /// Number of messages named in a difference.
    const NAMED: usize = 5;
    let (lacks, adds) = (missing(ours, &answer.hits), missing(&answer.hits, ours));
    if lacks.is_empty() && adds.is_empty() {
        return None;
    }
    let named = |messages: &[u32]| {
        let first = messages.iter().take(NAMED).map(u32::to_string);
        let first: Vec<String> = first.collect();
        let dots = if messages.len() > NAMED { " ..." } else { "" };
        format!("{} ({}{dots})", messages.len(), first.join(" "))
    };
    let (system, task) = (answer.system, answer.task);
    Some(format!(
        "{task}: {system} does not find {} that {OURS} finds, and finds {} more",
        named(&lacks),
        named(&adds)
    ))
}

/// The numbers in `one` that are missing in `other`; both are sorted.
fn missing(one: &[u32], other: &[u32]) -> Vec<u32> {
    let only = one.iter().filter(|hit| other.binary_search(hit).is_err());
    only.copied().collect()
}

pub(crate) fn shown(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(system: &'static str, task: &'static str, value: f64, count: Option<u64>) -> Figure {
        Figure {
            count,
            ..Figure::new(system, task, value)
        }
    }

    fn report(figures: Vec<Figure>, answers: Vec<Answer>) -> Report {
        Report {
            header: Header {
                skipped: vec!["courier skipped: not there".to_owned()],
                ..Header::new("store", true, "/".as_ref())
            },
            messages: 3,
            few: None,
            octets: 9,
            systems: vec!["vere", "dovecot mdbox", "cyrus", XAPIAN],
            figures,
            answers,
            complete: true,
        }
    }

    fn row(report: &Report, name: &str) -> Option<Value> {
        let rows = report.rows();
        rows.iter().find(|row| row.name == name).map(Row::json)
    }

    #[test]
    fn bars_are_judged_beside_the_peer_that_they_name() {
        let report = report(
            vec![
                figure("vere", "list", 40.0, Some(3)),
                figure("vere", "list", 60.0, Some(3)),
                figure("dovecot mdbox", "list", 100.0, Some(3)),
                figure("cyrus", "list", 900.0, Some(2)),
                figure("vere", "APPEND, 1 connection", 110.0, None),
                figure("dovecot mdbox", "APPEND, 1 connection", 100.0, None),
                figure("cyrus", "APPEND, 1 connection", 10.0, None),
                figure("vere", "IDLE notice", 0.2, None),
            ],
            Vec::new(),
        );
        let list = row(&report, "vere: list").unwrap();
        assert_eq!(
            (&list["peer"], &list["ratio"]),
            (&"dovecot mdbox".into(), &0.5.into())
        );
        assert_eq!(list["ok"], true);
        assert_eq!(
            row(&report, "vere: APPEND, 1 connection").unwrap()["ok"],
            false
        );
        assert_eq!(row(&report, "vere: IDLE notice").unwrap()["ok"], true);
        assert_eq!(
            report.differences(),
            ["list: answers differ: cyrus 2, dovecot mdbox 3, vere 3"]
        );
        assert!(report.table().contains("MISSED"));
        let page = crate::store::html::page(&report);
        assert!(page.contains("<td>list [ms]</td>"), "{page}");
        assert!(page.contains("courier skipped"), "{page}");
    }

    #[test]
    fn what_finds_words_only_is_compared_apart_and_where_it_finds_the_same() {
        let answer = |system, task, hits: &[u32]| Answer {
            system,
            task,
            hits: hits.to_vec(),
        };
        let forty: Vec<u32> = (0..40).collect();
        let report = report(
            vec![
                figure("vere", "TEXT 1 %", 1.0, None),
                figure("cyrus", "TEXT 1 %", 100.0, None),
                figure(XAPIAN, "TEXT 1 %", 0.5, None),
                figure("vere", "BODY 1 %", 1.0, None),
                figure(XAPIAN, "BODY 1 %", 2.0, None),
            ],
            vec![
                answer("vere", "TEXT 1 %", &forty),
                answer("cyrus", "TEXT 1 %", &forty),
                answer(XAPIAN, "TEXT 1 %", &forty[1..]),
                answer("vere", "BODY 1 %", &[1, 2, 3]),
                answer(XAPIAN, "BODY 1 %", &[2, 3, 4]),
            ],
        );
        assert_eq!(row(&report, "vere: TEXT 1 %").unwrap()["peer"], "cyrus");
        let beside = row(&report, "vere: TEXT 1 %, beside cyrus xapian").unwrap();
        assert_eq!(beside["ok"], false);
        assert!(row(&report, "vere: BODY 1 %, beside cyrus xapian").is_none());
        assert_eq!(
            report.differences(),
            [
                "TEXT 1 %: cyrus xapian does not find 1 (0) that vere finds, and finds 0 () more",
                "BODY 1 %: cyrus xapian does not find 1 (1) that vere finds, and finds 1 (4) more",
            ]
        );
    }
}
