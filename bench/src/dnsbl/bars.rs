//! The bars of our figures, and the peers of each comparison.

use super::cached::{self, ADDRESSES, MAPS};
use super::list::Shape;
use super::plan::SEEDS;
use super::servers::{OURS, RBLDNSD};
use super::{cpu, flood, memory, reload};
use crate::figures::Figures;
use crate::row::Bar::{self, RatioMax, ValueMax, ValueMin};
use crate::row::Row;

/// A figure with a bar.
struct Wanted {
    system: &'static str,
    figure: String,
    /// The peer and its figure.
    beside: Option<(&'static str, String)>,
    bar: Bar,
}

fn ours(figure: impl Into<String>, bar: Bar) -> Wanted {
    Wanted {
        system: OURS,
        figure: figure.into(),
        beside: None,
        bar,
    }
}

impl Wanted {
    fn beside(mut self, system: &'static str, figure: impl Into<String>) -> Self {
        self.beside = Some((system, figure.into()));
        self
    }

    /// A figure of the cache with maps.
    fn of_maps(mut self) -> Self {
        self.system = MAPS;
        self
    }

    fn row(&self, figures: &Figures) -> Option<Row> {
        let value = figures.median(self.system, &self.figure)?;
        let unit = figures.unit(&self.figure)?;
        let name = format!("{}: {}", self.system, self.figure);
        let Some((system, figure)) = &self.beside else {
            return Some(Row::new(name, value, unit).bar(self.bar));
        };
        let peer = figures.median(system, figure)?;
        let name = format!("{name}, beside {system}: {figure}");
        let row = Row::new(name, value, unit).beside(((*system).to_owned(), peer));
        Some(row.bar(self.bar))
    }
}

fn all() -> Vec<Wanted> {
    let mut all = Vec::new();
    for seed in SEEDS {
        let queries = cached::queries(seed);
        let fewer = ours(queries.clone(), RatioMax(0.62)).of_maps();
        all.push(fewer.beside(ADDRESSES, queries));
        all.push(ours(cached::gained(seed), ValueMin(10.0)).of_maps());
    }
    // The same work for the peer: rbldnsd has no maps, so that the classic query stands beside both queries here.
    for figure in [cpu::ADDRESSES, cpu::MAPS] {
        all.push(ours(figure, RatioMax(0.67)).beside(RBLDNSD, cpu::ADDRESSES));
    }
    for shape in [Shape::Neighbours, Shape::Uniform] {
        all.push(ours(memory::resident(shape), ValueMax(200.0)));
        all.push(ours(memory::load(shape), ValueMax(5.0)));
    }
    all.push(ours(reload::MISSED, ValueMax(0.0)));
    for figure in [flood::SAME, flood::OTHERS, flood::VICTIMS] {
        all.push(ours(figure, ValueMax(1.5)));
    }
    all
}

/// A row for each bar with figures.
pub(super) fn rows(figures: &Figures) -> Vec<Row> {
    all()
        .iter()
        .filter_map(|wanted| wanted.row(figures))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_stand_beside_addresses_and_the_server_beside_its_peer() {
        let mut figures = Figures::default();
        figures.add(MAPS, cached::queries(3), 61.0, "queries");
        figures.add(ADDRESSES, cached::queries(3), 100.0, "queries");
        figures.add(MAPS, cached::gained(3), 9.9, "points");
        figures.add(OURS, cpu::ADDRESSES, 3.0, "us/query");
        figures.add(OURS, cpu::MAPS, 4.0, "us/query");
        figures.add(RBLDNSD, cpu::ADDRESSES, 5.0, "us/query");
        figures.add(RBLDNSD, cpu::MAPS, 1.0, "us/query");
        figures.add(OURS, reload::MISSED, 0.0, "answers");
        let lines: Vec<String> = rows(&figures).iter().map(Row::line).collect();
        let expected = [
            "maps: trace 3: queries, beside addresses: trace 3: queries: 61.0 queries, ratio 0.610 (ratio <= 0.62: ok)",
            "maps: trace 3: hits gained: 9.9 points (value >= 10: MISSED)",
            "vere: A: CPU, beside rbldnsd: A: CPU: 3.0 us/query, ratio 0.600 (ratio <= 0.67: ok)",
            "vere: AAAA: CPU, beside rbldnsd: A: CPU: 4.0 us/query, ratio 0.800 (ratio <= 0.67: MISSED)",
            "vere: reload under load: missed answers: 0.000 answers (value <= 0: ok)",
        ];
        assert_eq!(lines, expected);
    }
}
