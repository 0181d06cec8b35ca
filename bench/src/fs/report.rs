//! The results as a table, as JSON and as a page.

use serde_json::Value;

use super::plan::Plan;
use super::results::{Results, at};
use super::{bars, files, mounts, postmark, small, sqlite};
use crate::page;
use crate::plot::Bars;
use crate::row::Row;

/// The plots: title, unit, figures.
const PLOTS: [(&str, &str, &[&str]); 6] = [
    (
        "files of 32 KB",
        "ms",
        &[files::WRITE_SMALL, files::ARRIVED_SMALL, files::READ_SMALL],
    ),
    (
        "files of 32 MB",
        "ms",
        &[
            files::WRITE_MEDIUM,
            files::ARRIVED_MEDIUM,
            files::READ_MEDIUM,
        ],
    ),
    (
        "large files",
        "MB/s",
        &[files::WRITE_LARGE, files::ARRIVED_LARGE, files::READ_LARGE],
    ),
    ("files of 4 KB", "files/s", &[small::DURABLE, small::LAZY]),
    ("SQLite", "transactions/s", &[sqlite::ROLLBACK, sqlite::LOG]),
    ("mounts", "ms", &[mounts::COLD, mounts::CACHED]),
];

/// A line for each bar, failure, option or skipped part.
fn verdicts(plan: &Plan, results: &Results) -> Vec<String> {
    let rows = bars::rows(plan, &results.figures);
    let mut lines: Vec<String> = rows.iter().map(Row::line).collect();
    let troubles = results.troubles.iter();
    lines.extend(troubles.map(|text| format!("trouble: {text}")));
    lines.extend(
        results
            .options
            .iter()
            .map(|text| format!("options: {text}")),
    );
    lines.extend(results.header.skipped_lines());
    lines
}

/// A table for a terminal.
pub(super) fn table(plan: &Plan, results: &Results) -> String {
    let machine = results.header.machine.line();
    let mut text = format!("fs, a file system on mail accounts\n{machine}\n");
    text.push_str(&results.figures.table().text());
    for line in verdicts(plan, results) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The JSON of DESIGN section 7.
pub(super) fn json(plan: &Plan, results: &Results) -> Value {
    let mut rows = results.figures.rows();
    rows.extend(bars::rows(plan, &results.figures));
    let mut json = results.header.json(&rows, results.figures.rounds());
    json["options"] = results.options.clone().into();
    json["troubles"] = results.troubles.clone().into();
    json
}

/// The figures as a page without external resources.
pub(super) fn page(plan: &Plan, results: &Results) -> String {
    let mut page = page::begin(
        "vere bench fs",
        &format!(
            "A file system on mail accounts beside bare IMAP, the local disk, sshfs and rclone; medians of the rounds, \
             systems taking turns. {}.",
            results.header.machine.line()
        ),
    );
    page::list(verdicts(plan, results), &mut page);
    let figures = &results.figures;
    let postmark = postmark::barred();
    let mark = [postmark.as_str()];
    let last = ("Postmark", "ms", mark.as_slice());
    for (title, unit, names) in PLOTS.into_iter().chain([last]) {
        bars_of(title, unit, names, plan, results).draw(&mut page);
    }
    figures.table().draw(&mut page);
    page + page::END
}

/// Bars of figures at all distances, a bar for each system.
fn bars_of(
    title: &str,
    unit: &'static str,
    names: &[&str],
    plan: &Plan,
    results: &Results,
) -> Bars {
    let figures = &results.figures;
    let systems = figures.systems();
    let group = |name: &str, round_trip: u64| {
        let name = at(round_trip, name);
        let values = systems.iter().map(|system| figures.median(system, &name));
        let values = values.collect();
        (name, values)
    };
    let groups = names.iter().flat_map(|name| {
        let far = plan.round_trips.iter();
        far.map(move |round_trip| group(name, *round_trip))
    });
    Bars {
        title: title.to_owned(),
        unit,
        groups: groups.collect(),
        systems: systems.iter().map(|name| (*name).to_owned()).collect(),
    }
}
