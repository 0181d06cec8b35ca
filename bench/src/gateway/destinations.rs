//! Very many destinations: mail for each new destination, the cost of a known destination, and a thousand active
//! destinations among the known.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use super::case::Case;
use super::look::looked;
use super::measure::{MISSING, Measurement, metric, take_turns};
use crate::arrivals::Arrivals;
use crate::error::BenchError;
use crate::load::{self, LoadEnd, LoadOptions, LoadProgress, LoadReport, Messages};
use crate::output::note;
use crate::peer::{OURS, Peer, Ways};
use crate::row::Row;
use crate::sink::{RunningSink, SinkHandle, SinkOptions};
use crate::store::usage;

const SESSIONS: usize = 50;
/// Messages for each new destination.
const EACH: u32 = 2;
/// Time without an arrival after which the rest is given up.
const STALL: Duration = Duration::from_secs(60);
/// Time after which idle connections are closed, and no longer count for a destination.
const CLOSED: Duration = Duration::from_secs(8);
/// The addresses of the hosts, many enough for the ports of all connections.
const HOSTS: u32 = 250;

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct DestinationsPlan {
    pub(super) known: u32,
    pub(super) active: u32,
    pub(super) rounds: usize,
    pub(super) send: Duration,
}

impl DestinationsPlan {
    pub(super) const FULL: Self = Self {
        known: 100_000,
        active: 1_000,
        rounds: 3,
        send: Duration::from_secs(5),
    };
    pub(super) const QUICK: Self = Self {
        known: 5_000,
        rounds: 1,
        send: Duration::from_secs(1),
        ..Self::FULL
    };

    /// The zone with a host for each domain.
    fn zone(&self) -> String {
        let lines = (0..self.known).map(|number| {
            let address = Ipv4Addr::from_bits(0x7f00_0101 + number % HOSTS);
            format!("d{number}.bench.test MX 10 m{number}.bench.test\nm{number}.bench.test A {address}\n")
        });
        lines.collect()
    }
}

/// Octets of resident memory of our system's gateway and of its other processes.
fn resident(system: &Peer) -> (f64, f64) {
    let processes = system.processes().unwrap_or_default();
    let (gateway, others): (Vec<_>, Vec<_>) = processes
        .into_iter()
        .partition(|process| process.command.contains("role gateway"));
    let octets = |processes: &[_]| usage::resident(processes) as f64 * 1024.0;
    (octets(&gateway), octets(&others))
}

/// Measures both a system that knows every destination and a system that knows only the active destinations.
pub(super) fn run(
    plan: &DestinationsPlan,
    vere: &Path,
    base: &Path,
) -> Result<Vec<Row>, BenchError> {
    let options = SinkOptions {
        listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        ..SinkOptions::remembering()
    };
    let sink = RunningSink::start(options)?;
    let ways = Ways::Zone {
        records: plan.zone(),
        port: sink.handle().address().port(),
    };
    let start = || Peer::vere_with(vere, &ways, base);
    let (many, few) = (start()?, start()?);
    let before = resident(&many);
    let mut rows = meet(plan, &many, sink.handle())?;
    std::thread::sleep(CLOSED);
    rows.extend(memory(plan, before, resident(&many)));
    let name = format!("queue list with {} destinations known", plan.known);
    rows.push(looked(name, &many, vere, &["queue", "list", "--json"])?);
    let case = Case {
        domains: 0..plan.active,
        ..Case::mix(SESSIONS)
    };
    let systems = [(FEW, &few), (MANY, &many)];
    let runs = take_turns(&systems, &case, plan.rounds, plan.send, sink.handle())?;
    rows.extend(active(plan, &runs));
    Ok(rows)
}

/// Sends mail for new destinations only.
fn meet(plan: &DestinationsPlan, system: &Peer, sink: &SinkHandle) -> Result<Vec<Row>, BenchError> {
    let options = LoadOptions {
        sessions: SESSIONS,
        messages: Messages::small(),
        destinations: 0..plan.known,
        tolerant: true,
        ..LoadOptions::new(system.address(), LoadEnd::Count(EACH * plan.known))
    };
    let report = load::run(&options, &LoadProgress::default())?;
    note(&format!(
        "{} messages to {} destinations taken in {:.1} s",
        report.acked.len(),
        plan.known,
        report.elapsed().as_secs_f64()
    ));
    let arrivals = Arrivals::await_all(sink, options.run, &report.acked, STALL);
    note(&format!("{} messages delivered", arrivals.by_id.len()));
    Ok(met(plan, &report, &arrivals))
}

fn met(plan: &DestinationsPlan, report: &LoadReport, arrivals: &Arrivals) -> Vec<Row> {
    let to = format!("{EACH} messages to each of {} new destinations", plan.known);
    let row = |what: &str, value, unit| Row::new(format!("{OURS}: {what}, {to}"), value, unit);
    let seconds = |end: Instant| (end - report.began).as_secs_f64().max(1e-9);
    let delivered = arrivals.by_id.len() as f64;
    let last = arrivals.last.unwrap_or(report.began);
    let missing = arrivals.missing(&report.acked).len();
    vec![
        row("taken", report.acked_per_second(), "messages/s"),
        row("delivered", delivered / seconds(last), "messages/s"),
        row("until the last is delivered", seconds(last), "s"),
        row("missing", missing as f64, "messages"),
    ]
}

/// The growth of memory for each destination.
fn memory(plan: &DestinationsPlan, before: (f64, f64), after: (f64, f64)) -> Vec<Row> {
    let row = |what: &str, before: f64, after: f64| {
        let known = plan.known;
        let name = format!("{OURS}: memory of {what} for each of {known} idle destinations");
        Row::new(
            name,
            ((after - before) / f64::from(known)).max(0.0),
            "octets",
        )
    };
    vec![
        row("the gateway", before.0, after.0),
        row("two nodes", before.1, after.1),
    ]
}

const MANY: &str = "many known";
const FEW: &str = "no others known";

fn active(plan: &DestinationsPlan, runs: &[Measurement]) -> Vec<Row> {
    let load = format!(
        "{} active of {} destinations known",
        plan.active, plan.known
    );
    let metrics = ["delivered", "CPU", "reply p99"].map(metric);
    let metrics = metrics.into_iter().flatten().chain([&MISSING]);
    metrics
        .map(|metric| metric.row(runs, MANY, FEW, &load))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::DestinationsPlan;

    #[test]
    fn every_domain_has_a_host_of_its_own() {
        let plan = DestinationsPlan {
            known: 600,
            ..DestinationsPlan::QUICK
        };
        let zone = plan.zone();
        assert_eq!(zone.lines().count(), 1_200);
        assert!(zone.contains("d599.bench.test MX 10 m599.bench.test\n"));
        let first = |line: &&str| line.ends_with(" A 127.0.1.1");
        assert_eq!(zone.lines().filter(first).count(), 3);
        // The product reads zones up to 16 MiB.
        assert!(DestinationsPlan::FULL.zone().len() < 12 << 20);
    }
}
