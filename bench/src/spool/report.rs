//! The figures of all rounds, as rows with bars.

use std::iter;

use serde_json::{Value, json};

use super::systems::{FLOOR, VERE};
use crate::output::Header;
use crate::page::{self, short};
use crate::plot::Lines;
use crate::row::{self, Bar, Row, median};
use crate::table::Table;

/// A figure of a system in a round.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) system: String,
    pub(super) value: f64,
}

/// A bar for a figure of a system, beside the same figure of a peer.
#[derive(Debug, Clone)]
struct Wanted {
    what: String,
    system: &'static str,
    peer: Option<&'static str>,
    bar: Bar,
}

/// A group of figures: a line for each system.
#[derive(Debug, Clone)]
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) unit: &'static str,
    /// The label below a point, and the figure.
    pub(super) points: Vec<(String, String)>,
}

/// Everything a run of the benchmark found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) header: Header,
    /// Placement of client and server of a connection.
    pub(super) placement: Option<&'static str>,
    pub(super) samples: Vec<Sample>,
    bars: Vec<Wanted>,
    pub(super) plots: Vec<Plot>,
}

impl Report {
    pub(super) const fn new(header: Header) -> Self {
        Self {
            header,
            placement: None,
            samples: Vec::new(),
            bars: Vec::new(),
            plots: Vec::new(),
        }
    }

    /// Notes a figure.
    pub(super) fn add(&mut self, what: &str, unit: &'static str, system: &str, value: f64) {
        self.samples.push(Sample {
            what: what.to_owned(),
            unit,
            system: system.to_owned(),
            value,
        });
    }

    /// Adds a group of figures: the label below each point, and its figure.
    pub(super) fn plot(
        &mut self,
        title: impl Into<String>,
        unit: &'static str,
        points: impl IntoIterator<Item = (String, String)>,
    ) {
        self.plots.push(Plot {
            title: title.into(),
            unit,
            points: points.into_iter().collect(),
        });
    }

    /// Sets a bar for a value.
    pub(super) fn bar(&mut self, what: &str, system: &'static str, bar: Bar) {
        self.want(what, system, None, bar);
    }

    /// Sets a bar for the ratio to a peer's value.
    pub(super) fn beside(
        &mut self,
        what: &str,
        system: &'static str,
        peer: &'static str,
        bar: Bar,
    ) {
        self.want(what, system, Some(peer), bar);
    }

    fn want(&mut self, what: &str, system: &'static str, peer: Option<&'static str>, bar: Bar) {
        self.bars.push(Wanted {
            what: what.to_owned(),
            system,
            peer,
            bar,
        });
    }

    /// The median of a figure over the rounds.
    pub(super) fn median(&self, what: &str, system: &str) -> Option<f64> {
        let of_both = |sample: &&Sample| sample.what == what && sample.system == system;
        let samples = self.samples.iter().filter(of_both);
        median(samples.map(|sample| sample.value))
    }

    /// Whether the floor is as fast as required; else no comparison with the floor is meaningful.
    fn floor_holds(&self) -> Option<bool> {
        let holds = |bar: &Wanted| {
            let mut samples = self.samples.iter();
            let sample = samples.find(|one| one.what == bar.what && one.system == FLOOR)?;
            let value = self.median(&bar.what, FLOOR)?;
            self.row(sample, bar, value, None).ok()
        };
        let mut own = self.bars.iter().filter(|bar| bar.system == FLOOR);
        own.try_fold(true, |all, bar| Some(all && holds(bar)?))
    }

    /// All rows: each figure of each system, once for each bar of the figure.
    pub(super) fn rows(&self) -> Vec<Row> {
        let floor_holds = self.floor_holds();
        let mut rows = Vec::new();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for sample in &self.samples {
            let key = (sample.what.as_str(), sample.system.as_str());
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let Some(value) = self.median(key.0, key.1) else {
                continue;
            };
            let bars = self.bars.iter();
            let own: Vec<&Wanted> = bars.filter(|bar| (&*bar.what, bar.system) == key).collect();
            if own.is_empty() {
                let name = format!("{}: {}", sample.system, sample.what);
                rows.push(Row::new(name, value, sample.unit));
            }
            rows.extend(
                own.into_iter()
                    .map(|bar| self.row(sample, bar, value, floor_holds)),
            );
        }
        rows
    }

    fn row(&self, sample: &Sample, wanted: &Wanted, value: f64, floor_holds: Option<bool>) -> Row {
        let peer = wanted.peer;
        let against = peer.map_or_else(String::new, |peer| format!(", beside {peer}"));
        Row {
            name: format!("{}: {}{against}", sample.system, sample.what),
            value,
            unit: sample.unit,
            peer: peer.and_then(|peer| Some((peer.to_owned(), self.median(&wanted.what, peer)?))),
            bar: Some(wanted.bar),
            // A slow floor would flatter us.
            flattered: peer == Some(FLOOR) && floor_holds == Some(false),
        }
    }

    /// The JSON of DESIGN section 7, with the single rounds and the skipped parts besides.
    pub(super) fn json(&self) -> Value {
        let round = |sample: &Sample| json!([sample.what, sample.system, sample.value]);
        let rounds = self.samples.iter().map(round).collect();
        let mut json = self.header.json(&self.rows(), rounds);
        json["placement"] = self.placement.into();
        json
    }

    /// The systems with a figure of a plot, in the order of their first figure.
    pub(super) fn systems(&self, plot: &Plot) -> Vec<&str> {
        let mut systems: Vec<&str> = Vec::new();
        for sample in &self.samples {
            let in_plot = plot.points.iter().any(|(_, what)| *what == sample.what);
            if in_plot && !systems.contains(&sample.system.as_str()) {
                systems.push(&sample.system);
            }
        }
        systems
    }

    /// A plot with the results.
    pub(super) fn lines(&self, plot: &Plot) -> Lines {
        let labels = plot.points.iter().enumerate();
        let labels = labels.map(|(place, (label, _))| (place as f64, label.clone()));
        let value = |system: &str, place: usize| self.median(&plot.points[place].1, system);
        let systems = self.systems(plot);
        Lines::of(&plot.title, plot.unit, labels.collect(), &systems, value)
    }

    /// Tables for a terminal.
    pub(super) fn table(&self) -> String {
        let placement = self.placement.unwrap_or("client and server anywhere");
        let mut text = format!("spool, {placement}\n{}\n", self.header.machine.line());
        for plot in &self.plots {
            text.push_str(&format!("\n{} [{}]\n", plot.title, plot.unit));
            let labels = plot.points.iter().map(|(label, _)| label.as_str());
            let mut table = Table::new(iter::once("system").chain(labels));
            for system in self.systems(plot) {
                let values = plot.points.iter().map(|(_, what)| {
                    let value = self.median(what, system);
                    value.map_or_else(|| "-".to_owned(), short)
                });
                table.push(iter::once(system.to_owned()).chain(values).collect());
            }
            text.push_str(&table.text());
        }
        let in_plot = |row: &Row| {
            let whats = self.plots.iter().flat_map(|plot| &plot.points);
            whats
                .into_iter()
                .any(|(_, what)| row.name.ends_with(&**what))
        };
        text.push('\n');
        for row in self.rows() {
            if row.bar.is_none() && !in_plot(&row) {
                text.push_str(&format!("{}\n", row.line()));
            }
        }
        for verdict in self.verdicts() {
            text.push_str(&format!("{verdict}\n"));
        }
        text
    }

    /// A line for each bar or skipped part.
    pub(super) fn verdicts(&self) -> Vec<String> {
        let rows = self.rows().into_iter();
        let judged = rows.filter(|row| row.bar.is_some());
        let mut lines: Vec<String> = judged.map(|row| row.line()).collect();
        lines.extend(self.header.skipped_lines());
        if self.floor_holds() == Some(false) {
            lines.push(format!(
                "the {FLOOR} is not fast enough here: rows of {VERE} beside it are not ok"
            ));
        }
        lines
    }

    /// The figures as a page without external resources.
    pub(super) fn page(&self) -> String {
        let mut page = page::begin(
            "vere bench spool",
            &format!(
                "Messages stored and deleted, pipelined by one client with equal octets in flight, and \
                 queues read back in blocks; medians of the rounds, systems taking turns. With one connection: {}. {}.",
                self.placement.unwrap_or("client and server anywhere"),
                self.header.machine.line()
            ),
        );
        for plot in &self.plots {
            self.lines(plot).draw(&mut page);
        }
        row::table(&self.rows()).draw(&mut page);
        page::list(self.header.skipped_lines(), &mut page);
        page + page::END
    }
}

#[cfg(test)]
mod tests {
    use super::{Bar, Header, Report, Row};
    use crate::spool::systems::{FLOOR, MEMCACHED_TEXT, VERE};

    fn report(floor: f64, ours: f64) -> Report {
        let mut report = Report::new(Header::new("spool", true, "/".as_ref()));
        for value in [floor * 3.0, floor, floor / 2.0] {
            report.add("x", "messages/s", FLOOR, value);
        }
        report.add("x", "messages/s", VERE, ours);
        report.add("x", "messages/s", MEMCACHED_TEXT, 10.0);
        report.add("y", "octets", VERE, 101.0);
        report.beside("x", FLOOR, MEMCACHED_TEXT, Bar::RatioMin(9.0));
        report.beside("x", VERE, FLOOR, Bar::RatioMin(0.6));
        report.beside("x", VERE, MEMCACHED_TEXT, Bar::RatioMin(6.0));
        report.bar("y", VERE, Bar::ValueMax(100.0));
        report
    }

    #[test]
    fn bars_are_judged_by_medians_and_a_slow_floor_flatters_nobody() {
        let ok = |report: &Report| {
            let rows = report.rows();
            rows.iter().map(Row::ok).collect::<Vec<_>>()
        };
        let missed = Some(false);
        let held = Some(true);
        assert_eq!(
            ok(&report(100.0, 60.0)),
            [held, held, held, None, missed],
            "floor, ours beside both, memcached, memory"
        );
        assert_eq!(
            ok(&report(100.0, 59.0)),
            [held, missed, missed, None, missed]
        );
        assert_eq!(
            ok(&report(89.0, 70.0)),
            [missed, missed, held, None, missed]
        );
        let json = report(100.0, 60.0).json();
        assert_eq!(json["rows"][1]["peer"], "floor");
        assert_eq!(json["rows"][1]["peer_value"], 100.0);
        assert_eq!(json["rows"][1]["bar"], "ratio >= 0.6");
    }
}
