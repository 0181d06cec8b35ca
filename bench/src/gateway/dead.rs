//! A thousand destinations, of which nine hundred are dead or slow: the loss of the living destinations.
//!
//! Two systems of ours take turns: a system without mail for the dead destinations, and a system whose queues are
//! full of such mail and receive more all the time.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use super::case::Case;
use super::measure::{MISSING, Measurement, metric, take_turns};
use crate::error::BenchError;
use crate::load::{self, LoadEnd, LoadOptions, LoadProgress, Messages};
use crate::output::note;
use crate::peer::{Peer, PeerError, Ways};
use crate::row::{Bar, Row};
use crate::sink::{Fault, RunningSink, SinkError, SinkOptions};

/// The ways not to take mail, and the loopback addresses where each is at home.
const NOBODY: [u8; 4] = [127, 0, 0, 2];
const SILENT: [u8; 4] = [127, 0, 0, 3];
const SLOW: [u8; 4] = [127, 0, 0, 4];
/// How long a slow host takes for each recipient.
const SLOWNESS: &str = "rcpt=delay:5s";

/// Least share of their rate that the living destinations must keep.
const KEPT_MIN: f64 = 0.9;
const SESSIONS: usize = 50;
/// The names of both systems.
const WELL: &str = "all well";
const BESET: &str = "900 dead";
/// Longer than anything is measured.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct DeadPlan {
    pub(super) living: u32,
    pub(super) dead: u32,
    /// Messages queued for each dead destination at the beginning.
    pub(super) waiting: u32,
    /// Messages a second for the dead destinations during the measurement of the living.
    pub(super) more: f64,
    pub(super) rounds: usize,
    pub(super) send: Duration,
}

impl DeadPlan {
    pub(super) const FULL: Self = Self {
        living: 100,
        dead: 900,
        waiting: 10,
        more: 50.0,
        rounds: 3,
        send: Duration::from_secs(5),
    };

    fn zone(&self) -> String {
        let host = |number: u32| match number.checked_sub(self.living).map(|dead| dead % 3) {
            None => [127, 0, 0, 1],
            Some(0) => NOBODY,
            Some(1) => SILENT,
            Some(_) => SLOW,
        };
        let lines = (0..self.living + self.dead).map(|number| {
            let address = std::net::Ipv4Addr::from(host(number));
            format!(
                "d{number}.bench.test MX 10 mx{number}.bench.test\n\
                 mx{number}.bench.test A {address}\n"
            )
        });
        lines.collect()
    }
}

/// The hosts of the dead destinations, for as long as needed.
struct Graveyard {
    /// The listener accepts connections and never speaks.
    _silent: TcpListener,
    _slow: RunningSink,
}

impl Graveyard {
    fn open(port: u16) -> Result<Self, BenchError> {
        let silent = SocketAddr::from((SILENT, port));
        let listen = |source: io::Error| {
            BenchError::Sink(SinkError::Listen {
                address: silent,
                source,
            })
        };
        let fault: Fault = SLOWNESS
            .parse()
            .map_err(|fault| listen(io::Error::other(fault)))?;
        let slow = SinkOptions {
            listen: SocketAddr::from((SLOW, port)),
            faults: vec![fault],
            ..SinkOptions::default()
        };
        Ok(Self {
            _silent: TcpListener::bind(silent).map_err(listen)?,
            _slow: RunningSink::start(slow)?,
        })
    }
}

/// Measures both systems in turns, and returns the rows of the results.
pub(super) fn run(plan: &DeadPlan, vere: &Path, base: &Path) -> Result<Vec<Row>, BenchError> {
    let sink = RunningSink::start(SinkOptions::remembering())?;
    let port = sink.handle().address().port();
    let _graveyard = Graveyard::open(port)?;
    let ways = Ways::Zone {
        records: plan.zone(),
        port,
    };
    let start = || Peer::vere_with(vere, &ways, base);
    let (well, beset) = (start()?, start()?);
    fill(plan, beset.address())?;
    let progress = LoadProgress::default();
    let more = progress.clone();
    let options = to_the_dead(plan, beset.address(), LoadEnd::After(FOREVER), 2);
    let options = LoadOptions {
        rate: Some(plan.more),
        ..options
    };
    let systems = [(WELL, &well), (BESET, &beset)];
    let case = Case {
        domains: 0..plan.living,
        ..Case::mix(SESSIONS)
    };
    let runs = std::thread::scope(|scope| {
        let loading = scope.spawn(move || load::run(&options, &more));
        let runs = take_turns(&systems, &case, plan.rounds, plan.send, sink.handle());
        progress.stop();
        // Unsent mail for the dead says nothing about the living.
        let _ = loading.join();
        runs
    })?;
    Ok(rows(plan, &runs))
}

/// Mail for the dead.
fn to_the_dead(plan: &DeadPlan, target: SocketAddr, end: LoadEnd, sessions: usize) -> LoadOptions {
    LoadOptions {
        sessions,
        messages: Messages::small(),
        destinations: plan.living..plan.living + plan.dead,
        tolerant: true,
        ..LoadOptions::new(target, end)
    }
}

/// Fills the queues of the dead.
fn fill(plan: &DeadPlan, target: SocketAddr) -> Result<(), BenchError> {
    let count = plan.dead * plan.waiting;
    let options = to_the_dead(plan, target, LoadEnd::Count(count), SESSIONS);
    let report = load::run(&options, &LoadProgress::default())?;
    note(&format!(
        "{} messages wait for {} dead destinations",
        report.acked.len(),
        plan.dead
    ));
    if report.acked.len() == count as usize {
        return Ok(());
    }
    Err(BenchError::Peer(PeerError::NotReady {
        name: "vere",
        last_words: "it does not take mail for dead destinations".to_owned(),
    }))
}

fn rows(plan: &DeadPlan, runs: &[Measurement]) -> Vec<Row> {
    let load = format!(
        "{} destinations beside {} that are dead or slow",
        plan.living, plan.dead
    );
    let metrics = ["delivered", "reply p99", "arrival p99"].map(metric);
    let metrics = metrics.into_iter().flatten().chain([&MISSING]);
    let mut rows: Vec<Row> = metrics
        .map(|metric| metric.row(runs, BESET, WELL, &load))
        .collect();
    rows[0].bar = Some(Bar::RatioMin(KEPT_MIN));
    rows
}

#[cfg(test)]
mod tests {
    use super::DeadPlan;

    #[test]
    fn every_third_of_the_dead_fails_in_a_way_of_its_own() {
        let zone = DeadPlan::FULL.zone();
        assert_eq!(zone.lines().count(), 2_000);
        for (address, count) in [(1, 100), (2, 300), (3, 300), (4, 300)] {
            let end = format!(" A 127.0.0.{address}");
            let found = zone.lines().filter(|line| line.ends_with(&end)).count();
            assert_eq!(found, count);
        }
    }
}
