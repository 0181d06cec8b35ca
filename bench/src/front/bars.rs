//! The bars of our figures, and the peers of each comparison.

use super::plan::CONNECTIONS;
use super::systems::{OURS, POSTFIX, POSTSCREEN, RESPONDER, Setup};
use super::{accepted, bounces, encrypted, handover, judged, open, storm};
use crate::figures::Figures;
use crate::row::Bar::{self, RatioMax, RatioMin, ValueMax, ValueMin};
use crate::row::Row;

/// The highest ratio of bounces, at which good mail has its bar.
const BOUNCES: f64 = 0.95;

/// Our way of running for the bars, and the figure with the peer.
struct Wanted {
    figure: String,
    beside: Option<&'static str>,
    bar: Bar,
}

fn wanted(figure: impl Into<String>, beside: Option<&'static str>, bar: Bar) -> Wanted {
    Wanted {
        figure: figure.into(),
        beside,
        bar,
    }
}

/// All bars; memory has a bar with the full number of connections only.
fn bars(connections: usize) -> Vec<Wanted> {
    let mut bars = vec![
        wanted(
            storm::delivered(BOUNCES),
            None,
            ValueMin(storm::DELIVERED_MIN),
        ),
        wanted(bounces::CPU, Some(POSTFIX), RatioMax(0.1)),
        // A twelfth.
        wanted(bounces::CPU, Some(POSTSCREEN), RatioMax(0.083)),
        wanted(bounces::CPU, Some(RESPONDER), RatioMax(1.5)),
        wanted(bounces::SWITCHES, None, ValueMax(2.0)),
        // A third.
        wanted(encrypted::FULL, Some(POSTFIX), RatioMax(0.333)),
        wanted(encrypted::RESUMED, Some(POSTFIX), RatioMax(0.333)),
        wanted(handover::CPU, None, ValueMax(handover::CPU_MAX)),
        wanted(accepted::CPU, Some(OURS[0].name), RatioMax(1.25)),
        wanted(accepted::RATE, Some(POSTFIX), RatioMin(10.0)),
        // A third, and a fifth.
        wanted(judged::CPU, Some(judged::PEER), RatioMax(0.333)),
        wanted(judged::SHARE, Some(judged::PEER), RatioMax(0.2)),
        wanted(judged::SAME, None, ValueMin(99.5)),
        wanted(judged::SAME_LABELLED, None, ValueMin(99.5)),
        wanted(open::HELD, None, ValueMin(99.0)),
        wanted(open::GREETING, None, ValueMax(50.0)),
    ];
    if connections >= CONNECTIONS {
        bars.push(wanted(open::MEMORY, None, ValueMax(100.0)));
    }
    bars
}

/// A row for each bar with figures, for each way of running ours.
pub(super) fn rows(figures: &Figures, connections: usize) -> Vec<Row> {
    rows_of(OURS, figures, connections)
}

fn rows_of(ours: &[Setup], figures: &Figures, connections: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for wanted in bars(connections) {
        rows.extend(ours.iter().filter_map(|setup| wanted.row(setup, figures)));
    }
    rows
}

impl Wanted {
    fn row(&self, setup: &Setup, figures: &Figures) -> Option<Row> {
        let value = figures.median(setup.name, &self.figure)?;
        let unit = figures.unit(&self.figure)?;
        let peer = self
            .beside
            .map(|name| (name, figures.median(name, &self.figure)));
        let peer = match peer {
            Some((_, None)) => return None,
            Some((name, Some(value))) => Some((name.to_owned(), value)),
            None => None,
        };
        let beside = peer.as_ref().map(|(name, _)| format!(", beside {name}"));
        let name = format!(
            "{}: {}{}",
            setup.name,
            self.figure,
            beside.unwrap_or_default()
        );
        let row = Row::new(name, value, unit).beside(peer);
        Some(row.bar(setup.has_bars.then_some(self.bar)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Setup; 2] = [
        Setup {
            name: "gateway",
            lines: "",
            has_bars: false,
            has_tls: true,
        },
        Setup {
            name: "front",
            lines: "[front]\n",
            has_bars: true,
            has_tls: true,
        },
    ];

    #[test]
    fn bars_are_for_the_front_and_figures_for_all() {
        let mut figures = Figures::default();
        figures.add("gateway", bounces::CPU, 60.0, "us/session");
        figures.add("front", bounces::CPU, 30.0, "us/session");
        figures.add(POSTFIX, bounces::CPU, 300.0, "us/session");
        figures.add(RESPONDER, bounces::CPU, 15.0, "us/session");
        figures.add("front", storm::delivered(0.95), 97.0, "%");
        let lines: Vec<String> = rows_of(&BOTH, &figures, 10).iter().map(Row::line).collect();
        let expected = [
            "front: bounces 0.95: delivered: 97.0 % (value >= 98: MISSED)",
            "gateway: bounced: CPU, beside postfix: 60.0 us/session, ratio 0.200",
            "front: bounced: CPU, beside postfix: 30.0 us/session, ratio 0.100 (ratio <= 0.1: ok)",
            "gateway: bounced: CPU, beside responder: 60.0 us/session, ratio 4.000",
            "front: bounced: CPU, beside responder: 30.0 us/session, ratio 2.000 (ratio <= 1.5: MISSED)",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn memory_has_its_bar_with_all_connections_only() {
        let mut figures = Figures::default();
        figures.add("front", open::MEMORY, 101.0, "MB");
        assert!(rows_of(&BOTH, &figures, 2_000).is_empty());
        let rows = rows_of(&BOTH, &figures, CONNECTIONS);
        assert_eq!(rows.iter().map(Row::ok).collect::<Vec<_>>(), [Some(false)]);
    }
}
