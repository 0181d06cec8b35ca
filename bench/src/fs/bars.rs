//! The bars of the file system's figures, and the peers of each comparison.

use super::plan::Plan;
use super::results::at;
use super::sftp::{RCLONE_FULL, RCLONE_WRITES, SSHFS};
use super::{files, relay};
use crate::figures::Figures;
use crate::peer::OURS;
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

/// A bar of the product, in figures at a distance.
struct At(u64);

impl At {
    fn value(&self, figure: &str, bar: Bar) -> Wanted {
        Wanted {
            system: OURS,
            figure: at(self.0, figure),
            beside: None,
            bar,
        }
    }

    fn beside(&self, figure: &str, system: &'static str, other: &str, bar: Bar) -> Wanted {
        Wanted {
            beside: Some((system, at(self.0, other))),
            ..self.value(figure, bar)
        }
    }

    /// Both modes of rclone.
    fn rclone(&self, figure: &str, other: &str, bar: Bar) -> [Wanted; 2] {
        [RCLONE_WRITES, RCLONE_FULL].map(|system| self.beside(figure, system, other, bar))
    }
}

impl Wanted {
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

fn all(plan: &Plan) -> Vec<Wanted> {
    let mut all = vec![Wanted {
        system: relay::RELAY,
        ..At(0).value(relay::THROUGHPUT, ValueMin(500.0))
    }];
    for round_trip in plan.round_trips.iter().copied() {
        // Without a distance the issue sets no bar for comparisons.
        if round_trip > 0 {
            all.extend(far(round_trip));
        }
        let near = At(round_trip);
        all.push(near.value(files::WIRE_UP, ValueMax(106.0)));
    }
    all
}

/// The bars of a distance.
fn far(round_trip: u64) -> Vec<Wanted> {
    let (far, limit) = (At(round_trip), round_trip as f64);
    let mut all = vec![
        Wanted {
            system: relay::RELAY,
            ..far.value(relay::ROUND_TRIP, ValueMax(limit + 1.0))
        },
        far.value(files::WRITE_SMALL, ValueMax(2.0 * limit + 10.0)),
        far.beside(files::WRITE_SMALL, SSHFS, files::WRITE_SMALL, RatioMax(0.6)),
        far.beside(
            files::WRITE_MEDIUM,
            SSHFS,
            files::WRITE_MEDIUM,
            RatioMax(0.8),
        ),
    ];
    all.extend(far.rclone(files::READ_SMALL, files::READ_SMALL, RatioMax(1.2)));
    all.extend(far.rclone(files::WRITE_MEDIUM, files::ARRIVED_MEDIUM, RatioMax(1.0)));
    all.extend(far.rclone(files::READ_MEDIUM, files::READ_MEDIUM, RatioMax(1.2)));
    all
}

/// A row for each bar with figures.
pub(super) fn rows(plan: &Plan, figures: &Figures) -> Vec<Row> {
    all(plan)
        .iter()
        .filter_map(|wanted| wanted.row(figures))
        .collect()
}
