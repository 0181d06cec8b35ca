//! The results as a table, as JSON and as a page.

use serde_json::Value;

use super::bars;
use super::measure::Results;
use super::plan::Plan;
use super::storm;
use crate::page;
use crate::plot::{Bars, Lines};
use crate::row::Row;

/// The figures of bounced and unfinished sessions in the plot of CPU time.
const SESSIONS: [&str; 3] = ["bounced", "closed after EHLO", "closed after the greeting"];

/// A line for each bar, failure or skipped part.
fn verdicts(plan: &Plan, results: &Results) -> Vec<String> {
    let rows = bars::rows(&results.figures, plan.connections);
    let mut lines: Vec<String> = rows.iter().map(Row::line).collect();
    let troubles = results.troubles.iter();
    lines.extend(troubles.map(|text| format!("trouble: {text}")));
    lines.extend(results.header.skipped_lines());
    lines
}

/// A table for a terminal.
pub(super) fn table(plan: &Plan, results: &Results) -> String {
    let machine = results.header.machine.line();
    let mut text = format!("front, sessions of unknown clients\n{machine}\n");
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
    rows.extend(bars::rows(&results.figures, plan.connections));
    let mut json = results.header.json(&rows, results.figures.rounds());
    json["troubles"] = results.troubles.clone().into();
    json
}

/// The figures as a page without external resources.
pub(super) fn page(plan: &Plan, results: &Results) -> String {
    let mut page = page::begin(
        "vere bench front",
        &format!(
            "Sessions of unknown clients, most of them without mail; medians of the rounds, systems taking turns. CPU \
             is user and system time of all processes of a system. {}.",
            results.header.machine.line()
        ),
    );
    page::list(verdicts(plan, results), &mut page);
    let figures = &results.figures;
    let systems = figures.systems();
    let group = |what: &&str| {
        let name = format!("{what}: CPU");
        let values = systems.iter().map(|system| figures.median(system, &name));
        ((*what).to_owned(), values.collect())
    };
    let bars = Bars {
        title: "CPU".to_owned(),
        unit: "us/session",
        systems: systems.iter().map(|name| (*name).to_owned()).collect(),
        groups: SESSIONS.iter().map(group).collect(),
    };
    bars.draw(&mut page);
    let points = plan.ratios.iter().map(|ratio| (*ratio, ratio.to_string()));
    let value = |system: &str, place: usize| {
        let ratio = plan.ratios.get(place)?;
        figures.median(system, &storm::delivered(*ratio))
    };
    let title = "good mail delivered, by the ratio of bounces";
    Lines::of(title, "%", points.collect(), &systems, value).draw(&mut page);
    figures.table().draw(&mut page);
    page + page::END
}
