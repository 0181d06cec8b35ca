//! The results of growth: a table of sizes, exponents with their bars, plots.

use serde_json::{Value, json};

use super::growth::{GROWING, Grown, Point};
use super::report::shown;
use crate::output::Header;
use crate::page;
use crate::peer::OURS;
use crate::plot::Lines;
use crate::row::{Bar, Row, median};
use crate::table::Table;

/// The fixed cost counts for little from this size on; the exponent is the exponent of larger sizes.
const CURVE_FROM: u64 = 5_000;

/// Number of sizes for an exponent.
const CURVE_POINTS: usize = 3;

/// All results.
#[derive(Debug)]
pub(super) struct Curves {
    pub(super) header: Header,
    pub(super) systems: Vec<&'static str>,
    pub(super) points: Vec<Point>,
    /// Whether the run was complete.
    pub(super) complete: bool,
}

impl Curves {
    /// The medians of a figure by the size of the mailbox.
    fn curve(&self, name: &str, system: &str) -> Vec<(u64, f64)> {
        let of = |point: &&Point| point.name == name && point.system == system;
        let points: Vec<&Point> = self.points.iter().filter(of).collect();
        let mut sizes: Vec<u64> = points.iter().map(|point| point.messages).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let value = |size: u64| {
            let same = points.iter().filter(|point| point.messages == size);
            Some((size, median(same.map(|point| point.value))?))
        };
        sizes.into_iter().filter_map(value).collect()
    }

    /// All rows: each figure at each size, and its exponent.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for growing in &GROWING {
            for system in &self.systems {
                let curve = self.curve(growing.name, system);
                rows.extend(curve.iter().map(|(size, value)| Row {
                    name: format!("{system}: {}, {size} messages", growing.name),
                    value: *value,
                    unit: growing.unit,
                    ..Row::default()
                }));
                rows.extend(growth(growing, system, &curve));
            }
        }
        rows
    }

    /// The exponents of our system with their bars, and the skipped parts.
    fn remarks(&self) -> Vec<String> {
        let rows = self.rows();
        let judged = rows.iter().filter(|row| row.bar.is_some());
        let mut lines: Vec<String> = judged
            .map(|row| {
                format!(
                    "{}: {} ({})",
                    row.name,
                    shown(Some(row.value)),
                    row.verdict()
                )
            })
            .collect();
        lines.extend(self.header.skipped_lines());
        lines
    }

    pub(super) fn json(&self) -> Value {
        let round = |point: &Point| {
            json!({
                "system": point.system,
                "task": point.name,
                "messages": point.messages,
                "value": point.value,
            })
        };
        let rounds = self.points.iter().map(round).collect();
        let mut json = self.header.json(&self.rows(), rounds);
        json["complete"] = self.complete.into();
        json["part"] = "growth".into();
        json
    }

    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{}store, by messages in the mailbox\n{}\n",
            if self.complete { "" } else { "INCOMPLETE: " },
            self.header.machine.line()
        );
        let mut table = Table::default();
        for growing in &GROWING {
            for system in &self.systems {
                let curve = self.curve(growing.name, system);
                if curve.is_empty() {
                    continue;
                }
                let mut row = vec![format!("{system}: {} [{}]", growing.name, growing.unit)];
                let cells = curve.into_iter();
                row.extend(cells.map(|(size, value)| format!("{size}: {}", shown(Some(value)))));
                table.push(row);
            }
        }
        text.push_str(&table.text());
        for line in self.remarks() {
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    pub(super) fn page(&self) -> String {
        let mut page = page::begin(
            "vere bench store --growth",
            &format!(
                "A mailbox filled step by step, the same asked at each size; medians. Both axes are \
                 logarithmic: what grows as the mailbox does rises as the line of messages. {}.",
                self.header.machine.line()
            ),
        );
        for growing in &GROWING {
            self.lines(growing).draw(&mut page);
        }
        page::list(self.remarks(), &mut page);
        page + page::END
    }

    fn lines(&self, growing: &Grown) -> Lines {
        let place = |size: u64| (size as f64).ln();
        let curve = |system: &&str| {
            let curve = self.curve(growing.name, system);
            let points = curve.iter().map(|(size, value)| (place(*size), *value));
            ((*system).to_owned(), points.collect::<Vec<_>>())
        };
        let mut lines: Vec<_> = self.systems.iter().map(curve).collect();
        lines.retain(|(_, points)| !points.is_empty());
        let mut sizes: Vec<u64> = self.points.iter().map(|point| point.messages).collect();
        sizes.sort_unstable();
        sizes.dedup();
        // A line in proportion to the number of messages, through the first value.
        let first = lines
            .first()
            .and_then(|(_, points)| points.first().copied());
        if let Some((_, value)) = first
            && let Some(least) = sizes.first()
        {
            let proportional = sizes
                .iter()
                .map(|size| (place(*size), value * *size as f64 / *least as f64));
            lines.push(("messages".to_owned(), proportional.collect()));
        }
        Lines {
            title: growing.name.to_owned(),
            unit: growing.unit,
            points: sizes
                .iter()
                .map(|size| (place(*size), size.to_string()))
                .collect(),
            lines,
        }
    }
}

/// The exponent of a figure, with the bar of our system.
fn growth(growing: &Grown, system: &str, curve: &[(u64, f64)]) -> Option<Row> {
    let beyond: Vec<(u64, f64)> = curve
        .iter()
        .filter(|(size, _)| *size >= CURVE_FROM)
        .copied()
        .collect();
    let value = match beyond.len() >= CURVE_POINTS {
        true => exponent(&beyond)?,
        false => exponent(curve)?,
    };
    Some(Row {
        name: format!("{system}: growth of {}", growing.name),
        value,
        unit: "exponent",
        bar: (system == OURS).then_some(Bar::ValueMax(growing.exponent_max)),
        ..Row::default()
    })
}

/// The slope of the line nearest to the logarithms of values over the logarithms of sizes.
fn exponent(curve: &[(u64, f64)]) -> Option<f64> {
    let points: Vec<(f64, f64)> = curve
        .iter()
        .filter(|(size, value)| *size > 0 && *value > 0.0)
        .map(|(size, value)| ((*size as f64).ln(), value.ln()))
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points
        .iter()
        .map(|(at, value)| (at - x) * (value - y))
        .sum();
    let spread: f64 = points.iter().map(|(at, _)| (at - x).powi(2)).sum();
    (points.len() >= 2 && spread > 0.0).then(|| both / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves(list: [f64; 4], append: [f64; 4]) -> Curves {
        let point = |name, messages, value| Point {
            system: OURS,
            name,
            messages,
            value,
        };
        let sizes = [1_000, 10_000, 20_000, 40_000];
        let of = |name, values: [f64; 4]| {
            let both = sizes.into_iter().zip(values);
            both.flat_map(move |(size, value)| {
                // The median of a size counts.
                [value / 2.0, value, value * 9.0].map(|value| point(name, size, value))
            })
        };
        Curves {
            header: Header {
                skipped: vec!["courier: no".to_owned()],
                ..Header::new("store", true, "/".as_ref())
            },
            systems: vec![OURS],
            points: of("list", list).chain(of("APPEND", append)).collect(),
            complete: true,
        }
    }

    fn verdict(curves: &Curves, name: &str) -> (f64, Option<bool>) {
        let rows = curves.rows();
        let row = rows.iter().find(|row| row.name == name).unwrap();
        ((row.value * 1_000.0).round() / 1_000.0, row.ok())
    }

    #[test]
    fn what_grows_faster_than_the_mailbox_misses_its_bar() {
        // The fixed cost makes the first step look small.
        let curves = curves([5.0, 10.0, 20.0, 40.0], [0.2, 0.2, 0.2, 0.4]);
        assert_eq!(verdict(&curves, "vere: growth of list"), (1.0, Some(true)));
        assert_eq!(
            verdict(&curves, "vere: growth of APPEND"),
            (0.5, Some(false))
        );
        assert_eq!(verdict(&curves, "vere: list, 20000 messages"), (20.0, None));
        let table = curves.table();
        assert!(
            table.contains("20000: 20") && table.contains("MISSED"),
            "{table}"
        );
        let page = curves.page();
        assert!(
            page.contains("<svg") && page.contains("courier: no"),
            "{page}"
        );
    }

    #[test]
    fn squares_have_the_exponent_two() {
        let squares = [1_u64, 2, 4].map(|size| (size, (size * size) as f64));
        assert!((exponent(&squares).unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(exponent(&squares[..1]), None);
    }
}
