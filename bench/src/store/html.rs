//! The figures as a page without external resources.

use super::report::Report;
use crate::page;
use crate::plot::{Bars, Lines};

/// Tasks side by side, with their units.
const BARS: [(&str, &str, &[&str]); 5] = [
    (
        "Reading",
        "ms",
        &["first SELECT", "list", "four fields", "all headers"],
    ),
    (
        "Fields",
        "ms",
        &["FROM", "SUBJECT", "SENTSINCE", "several fields"],
    ),
    (
        "Texts",
        "ms",
        &[
            "TEXT absent",
            "TEXT 0.1 %",
            "TEXT 1 %",
            "TEXT 10 %",
            "TEXT 50 %",
            "phrase 1 %",
            "part of a word 1 %",
            "10 characters",
        ],
    ),
    (
        "Removing and hearing",
        "ms",
        &["expunge 1 %", "expunge 20 %", "IDLE notice"],
    ),
    (
        "Adding",
        "messages/s",
        &["APPEND, 1 connection", "APPEND, 10 connections"],
    ),
];

/// Numbers of recipients, each with a task.
type ByRecipients = [(u32, &'static str); 4];

/// MFS Figures 10 and 11.
const FIGURES: [(&str, &str, ByRecipients); 2] = [
    (
        "MFS Figure 10: mailboxes written, by recipients of a transaction",
        "mailboxes/s",
        [
            (1, "delivery, 1 recipient"),
            (3, "delivery, 3 recipients"),
            (5, "delivery, 5 recipients"),
            (15, "delivery, 15 recipients"),
        ],
    ),
    (
        "MFS Figure 11: written to disks, by recipients of a transaction",
        "KiB/message",
        [
            (1, "written, 1 recipient"),
            (3, "written, 3 recipients"),
            (5, "written, 5 recipients"),
            (15, "written, 15 recipients"),
        ],
    ),
];

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut page = page::begin(
        "vere bench store",
        &format!(
            "A mailbox of {} messages ({} MiB); medians of the rounds, systems taking turns. {}.",
            report.messages,
            report.octets >> 20,
            report.header.machine.line()
        ),
    );
    for (title, unit, tasks) in BARS {
        bars(report, title, unit, tasks).draw(&mut page);
    }
    for (title, unit, tasks) in FIGURES {
        by_recipients(report, title, unit, tasks).draw(&mut page);
    }
    for table in report.tables() {
        table.draw(&mut page);
    }
    page::list(report.remarks(), &mut page);
    page.push_str("<h2>CPU time of all processes, ms</h2>");
    report.cpu_table().draw(&mut page);
    page + page::END
}

fn bars(report: &Report, title: &str, unit: &'static str, tasks: &[&str]) -> Bars {
    let has = |name: &&&str| tasks.iter().any(|task| report.median(task, name).is_some());
    let systems: Vec<&str> = report.systems.iter().filter(has).copied().collect();
    let group = |task: &&str| {
        let values = systems.iter().map(|name| report.median(task, name));
        ((*task).to_owned(), values.collect())
    };
    Bars {
        title: title.to_owned(),
        unit,
        systems: systems.iter().map(|name| (*name).to_owned()).collect(),
        groups: tasks.iter().map(group).collect(),
    }
}

fn by_recipients(report: &Report, title: &str, unit: &'static str, tasks: ByRecipients) -> Lines {
    let points = tasks.map(|(recipients, _)| (f64::from(recipients), recipients.to_string()));
    let value = |system: &str, place: usize| report.median(tasks[place].1, system);
    Lines::of(title, unit, points.into(), &report.systems, value)
}
