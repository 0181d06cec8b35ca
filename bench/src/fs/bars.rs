//! The bars of the file system's figures, and the peers of each comparison.

use super::plan::Plan;
use super::results::at;
use super::sftp::{RCLONE_FULL, RCLONE_WRITES, SSHFS};
use super::{bare, files, git, mounts, postmark, relay, small, sqlite};
use crate::figures::Figures;
use crate::peer::OURS;
use crate::row::Bar::{self, RatioMax, RatioMin, ValueMax, ValueMin};
use crate::row::Row;

/// Files whose memory has a bar.
const KNOWN_FILES: usize = 1_000_000;

/// The share of a second copy that may be sent: names and places of chunks. The issue sets no bar.
const WIRE_AGAIN_MAX: f64 = 2.0;

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
        let peer = figures.median(system, figure);
        let name = format!("{name}, beside {system}: {figure}");
        let row = Row::new(name, value, unit).beside(peer.map(|peer| ((*system).to_owned(), peer)));
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
        let at = At(round_trip);
        for figure in [files::WIRE_UP, files::WIRE_DOWN] {
            let most = if plan.base64 { 140.0 } else { 106.0 };
            all.push(at.value(figure, ValueMax(most)));
        }
        all.push(at.value(files::WIRE_AGAIN, ValueMax(WIRE_AGAIN_MAX)));
        for figure in [sqlite::ROLLBACK_WHOLE, sqlite::LOG_WHOLE, git::WHOLE] {
            all.push(at.value(figure, ValueMin(1.0)));
        }
        all.push(at.value(mounts::COLD, ValueMax(7.0 * round_trip as f64 + 100.0)));
        all.push(at.value(mounts::CACHED, ValueMax(100.0)));
    }
    for figure in [
        mounts::known_of(KNOWN_FILES),
        mounts::walked_of(KNOWN_FILES),
    ] {
        all.push(At(0).value(&figure, ValueMax(300.0)));
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
    all.push(far.beside(
        files::WRITE_LARGE,
        bare::IMAP,
        bare::APPEND_LARGE,
        RatioMin(0.6),
    ));
    all.push(far.beside(
        files::READ_LARGE,
        bare::IMAP,
        bare::FETCH_LARGE,
        RatioMin(0.6),
    ));
    let postmark = postmark::barred();
    all.push(far.beside(&postmark, SSHFS, &postmark, RatioMax(1.0)));
    for figure in [small::DURABLE, small::LAZY, sqlite::ROLLBACK, sqlite::LOG] {
        all.push(far.beside(figure, SSHFS, figure, RatioMin(2.0)));
    }
    all
}

/// A row for each bar with figures.
pub(super) fn rows(plan: &Plan, figures: &Figures) -> Vec<Row> {
    all(plan)
        .iter()
        .filter_map(|wanted| wanted.row(figures))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::accounts::Format;
    use super::*;

    #[test]
    fn figures_stand_beside_their_peers_and_an_absent_peer_is_said() {
        let plan = Plan::new(true, &[], &[20], Format::Mdbox);
        let mut figures = Figures::default();
        figures.add(OURS, at(20, files::WRITE_SMALL), 49.0, "ms");
        figures.add(SSHFS, at(20, files::WRITE_SMALL), 100.0, "ms");
        figures.add(OURS, at(20, sqlite::LOG), 30.0, "transactions/s");
        figures.add(OURS, at(20, mounts::COLD), 241.0, "ms");
        let lines: Vec<String> = rows(&plan, &figures).iter().map(Row::line).collect();
        let expected = [
            "vere: 20 ms: 32 KB write+fsync+close: 49.0 ms (value <= 50: ok)",
            "vere: 20 ms: 32 KB write+fsync+close, beside sshfs: 20 ms: 32 KB write+fsync+close: 49.0 ms, ratio 0.490 \
             (ratio <= 0.6: ok)",
            "vere: 20 ms: SQLite, WAL, beside sshfs: 20 ms: SQLite, WAL: 30.0 transactions/s (ratio >= 2: nothing to \
             compare with)",
            "vere: 20 ms: mount, nothing cached: 241 ms (value <= 240: MISSED)",
        ];
        assert_eq!(lines, expected);
    }
}
