//! The results as a table, as JSON and as a page.

use serde_json::Value;

use super::bars;
use super::cached::{self, ADDRESSES, MAPS, WITHIN_MS};
use super::cpu;
use super::results::Results;
use super::servers::{OURS, RBLDNSD};
use crate::page;
use crate::plot::{Bars, Lines};
use crate::row::Row;

/// A line for each bar, failure or skipped part.
fn verdicts(results: &Results) -> Vec<String> {
    let rows = bars::rows(&results.figures);
    let mut lines: Vec<String> = rows.iter().map(Row::line).collect();
    let troubles = results.troubles.iter();
    lines.extend(troubles.map(|text| format!("trouble: {text}")));
    lines.extend(results.header.skipped_lines());
    lines
}

/// A table for a terminal.
pub(super) fn table(results: &Results) -> String {
    let machine = results.header.machine.line();
    let mut text = format!("dnsbl, lists of addresses\n{machine}\n");
    text.push_str(&results.figures.table().text());
    for line in verdicts(results) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The JSON of DESIGN section 7.
pub(super) fn json(results: &Results) -> Value {
    let mut rows = results.figures.rows();
    rows.extend(bars::rows(&results.figures));
    let mut json = results.header.json(&rows, results.figures.rounds());
    json["troubles"] = results.troubles.clone().into();
    json
}

/// The figures as a page without external resources.
pub(super) fn page(results: &Results) -> String {
    let mut page = page::begin(
        "vere bench dnsbl",
        &format!(
            "DNS block lists: a server beside rbldnsd, and a cache with maps of 128 neighbours beside one with single \
             addresses; medians of the rounds, servers taking turns. {}.",
            results.header.machine.line()
        ),
    );
    page::list(verdicts(results), &mut page);
    let figures = &results.figures;
    let servers = [RBLDNSD, OURS];
    let group = |name: &&str| {
        let values = servers.iter().map(|system| figures.median(system, name));
        ((*name).to_owned(), values.collect())
    };
    let bars = Bars {
        title: "CPU".to_owned(),
        unit: "us/query",
        systems: servers.map(str::to_owned).into(),
        groups: [cpu::ADDRESSES, cpu::MAPS].iter().map(group).collect(),
    };
    bars.draw(&mut page);
    let points = WITHIN_MS
        .iter()
        .map(|ms| ((*ms as f64).log10(), ms.to_string()));
    let value = |system: &str, place: usize| {
        let ms = WITHIN_MS.get(place)?;
        figures.median(system, &cached::looked_up(*ms))
    };
    let title = "look-ups that end within a time in ms (Figure 15)";
    let ways = [ADDRESSES, MAPS];
    Lines::of(title, "%", points.collect(), &ways, value).draw(&mut page);
    figures.table().draw(&mut page);
    page + page::END
}
