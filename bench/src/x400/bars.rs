//! The bars of our figures, and the peers of each comparison.

use super::bare::RAW;
use super::full;
use super::load::{FULL, THROUGHPUT, figure};
use super::plan::{Case, Durability, LONG, Plan, SHORT};
use super::system::Shape;
use crate::figures::Figures;
use crate::row::Bar::{self, RatioMin, ValueMax, ValueMin};
use crate::row::Row;

/// The largest part of the rate that the archive may cost.
const ARCHIVE_MIN: f64 = 0.75;
/// The least part of the raw stream's throughput.
const RAW_MIN: f64 = 0.5;
/// The least rate with a long queue.
const QUEUED_MIN: f64 = 1_500.0;
/// The least part of the first rate that is left at the end of a long queue.
const KEPT_MIN: f64 = 0.8;
/// 2 GiB, in MB.
const MEMORY_MAX: f64 = 2_147.5;
/// Seconds.
const RESTART_MAX: f64 = 60.0;

/// A figure with a bar.
struct Wanted {
    system: &'static str,
    figure: String,
    /// The peer and its figure.
    beside: Option<(&'static str, String)>,
    bar: Bar,
}

impl Wanted {
    const fn of(shape: Shape, figure: String, bar: Bar) -> Self {
        Self {
            system: shape.name(),
            figure,
            beside: None,
            bar,
        }
    }

    fn beside(mut self, system: &'static str, figure: String) -> Self {
        self.beside = Some((system, figure));
        self
    }

    fn row(&self, figures: &Figures) -> Option<Row> {
        let value = figures.median(self.system, &self.figure)?;
        let unit = figures.unit(&self.figure)?;
        let name = format!("{}: {}", self.system, self.figure);
        let Some((system, figure)) = &self.beside else {
            return Some(Row::new(name, value, unit).bar(self.bar));
        };
        let peer = figures.median(system, figure);
        let name = format!("{name}, beside {system}: {figure}");
        let row = Row::new(name, value, unit).beside(peer.map(|peer| ((*system).to_owned(), peer)));
        Some(row.bar(self.bar))
    }
}

fn all(queued: u64) -> Vec<Wanted> {
    let mut all = Vec::new();
    for durability in Durability::ALL {
        let shape = Shape::new(durability);
        let least = match durability {
            Durability::Synced => 2_000.0,
            Durability::Replicated => 5_000.0,
        };
        for size in SHORT {
            let rate = figure(&Case::of(size), FULL);
            all.push(Wanted::of(shape, rate, ValueMin(least)));
        }
        for size in SHORT.into_iter().chain(LONG) {
            let rate = figure(&Case::of(size), FULL);
            let wanted = Wanted::of(shape.archived(), rate.clone(), RatioMin(ARCHIVE_MIN));
            all.push(wanted.beside(shape.name(), rate));
        }
        for size in LONG {
            let speed = figure(&Case::of(size), THROUGHPUT);
            let wanted = Wanted::of(shape, speed.clone(), RatioMin(RAW_MIN));
            all.push(wanted.beside(RAW, speed));
        }
        all.extend(long_queue(shape, queued));
    }
    all
}

fn long_queue(shape: Shape, queued: u64) -> Vec<Wanted> {
    let of = |what: &str, bar| Wanted::of(shape, full::figure(queued, what), bar);
    let mut all = Vec::new();
    for course in [full::FILL, full::DRAIN] {
        all.push(of(&full::least(course), ValueMin(QUEUED_MIN)));
        let last = of(&full::last(course), RatioMin(KEPT_MIN));
        let first = full::figure(queued, &full::first(course));
        all.push(last.beside(shape.name(), first));
    }
    all.push(of(full::MEMORY, ValueMax(MEMORY_MAX)));
    all.push(of(full::RESTART, ValueMax(RESTART_MAX)));
    all.push(of(full::MISSING, ValueMax(0.0)));
    all
}

/// A row for each bar with figures.
pub(super) fn rows(plan: &Plan, figures: &Figures) -> Vec<Row> {
    let all = all(plan.queued);
    all.iter()
        .filter_map(|wanted| wanted.row(figures))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_bars_and_long_messages_stand_beside_the_raw_stream() {
        let plan = Plan::new(true, &[], &[], Some(100));
        let mut figures = Figures::default();
        let (short, long) = (Case::of(SHORT[0]), Case::of(LONG[0]));
        figures.add("synced", figure(&short, FULL), 2_500.0, "messages/s");
        figures.add(
            "synced, archive",
            figure(&short, FULL),
            1_800.0,
            "messages/s",
        );
        figures.add("synced", figure(&long, THROUGHPUT), 400.0, "MB/s");
        figures.add(RAW, figure(&long, THROUGHPUT), 1_000.0, "MB/s");
        figures.add("replicated", full::figure(100, full::RESTART), 61.0, "s");
        let lines: Vec<String> = rows(&plan, &figures).iter().map(Row::line).collect();
        let expected = [
            "synced: 10 sources, 1 KB: full transfers: 2500 messages/s (value >= 2000: ok)",
            "synced, archive: 10 sources, 1 KB: full transfers, beside synced: 10 sources, 1 KB: full transfers: \
             1800 messages/s, ratio 0.720 (ratio >= 0.75: MISSED)",
            "synced: 10 sources, 1 MB: throughput, beside raw stream: 10 sources, 1 MB: throughput: 400 MB/s, \
             ratio 0.400 (ratio >= 0.5: MISSED)",
            "replicated: 100 queued: restart with the full queue until a message is accepted: 61.0 s (value <= 60: MISSED)",
        ];
        assert_eq!(lines, expected);
    }
}
