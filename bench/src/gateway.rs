//! `vere-bench gateway`: messages relayed per second, CPU per message and reply times, against Postfix and against
//! the limits of the machine.
//!
//! The systems run side by side and take turns, A B A B, so that the machine's other load affects every system alike;
//! every figure is the median of the rounds. A message counts as delivered when the sink has received the message.

mod backlog;
mod bars;
mod case;
mod dead;
mod destinations;
mod look;
mod measure;
mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use crate::error::BenchError;
use crate::noop::NoopRelay;
use crate::output::{Common, Header, note};
use crate::peer::{self, OURS, Peer, PostfixSetup, there};
use crate::process::CpuAccount;
use crate::sink::{RunningSink, SinkOptions};

use case::Case;
use dead::DeadPlan;
use destinations::DestinationsPlan;
use measure::{Target, measure, metric};
use report::Report;

/// Measures the gateway: throughput, CPU per message and reply times, beside Postfix.
#[derive(Debug, Clone, Args)]
pub struct GatewayArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only this part; with `--quick` the default is `loads`.
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Option<Part>,
    /// How many messages the backlog has.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    pub messages: u32,
    /// How many destinations are met; 100,000, with `--quick` 5,000.
    #[arg(long, value_name = "COUNT")]
    pub destinations: Option<u32>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Loads of several sizes on all systems, in turns.
    Load,
    /// A thousand destinations, most of them dead.
    Dead,
    /// Many messages queued, looked at, drained.
    Backlog,
    /// Very many destinations, met for the first time and then known.
    Destinations,
}

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    sessions: &'static [usize],
    rounds: usize,
    /// Time of sending to a system in a round.
    send: Duration,
    /// Time of sending for the rows of the limit.
    send_limit: Duration,
    /// No round begins after this time.
    budget: Duration,
    /// Messages of 1 KB, half load, and every Postfix.
    full: bool,
    parts: Vec<Part>,
    backlog: u32,
    destinations: DestinationsPlan,
}

/// Sessions of the load that a system can sustain.
const HALF_LOAD_SESSIONS: usize = 50;

impl Plan {
    fn of(args: &GatewayArgs) -> Self {
        let plan = if args.common.quick {
            Self::quick()
        } else {
            Self::full()
        };
        Self {
            parts: args.only.map_or(plan.parts, |only| vec![only]),
            backlog: args.messages,
            destinations: match args.destinations {
                Some(known) => DestinationsPlan {
                    known,
                    active: plan.destinations.active.min(known),
                    ..plan.destinations
                },
                None => plan.destinations,
            },
            ..plan
        }
    }

    fn quick() -> Self {
        Self {
            sessions: &[1, 10, 50],
            rounds: 3,
            send: Duration::from_millis(800),
            send_limit: Duration::from_millis(300),
            budget: Duration::from_secs(45),
            full: false,
            parts: vec![Part::Load],
            backlog: 0,
            destinations: DestinationsPlan::QUICK,
        }
    }

    fn full() -> Self {
        Self {
            sessions: &[1, 10, 50, 200],
            rounds: 3,
            send: Duration::from_secs(3),
            send_limit: Duration::from_secs(1),
            budget: Duration::from_secs(1_500),
            full: true,
            parts: vec![Part::Load, Part::Dead, Part::Backlog, Part::Destinations],
            backlog: 0,
            destinations: DestinationsPlan::FULL,
        }
    }

    fn cases(&self) -> Vec<Case> {
        let mix = self.sessions.iter().map(|sessions| Case::mix(*sessions));
        let small = self.sessions.iter().filter(|_| self.full);
        mix.chain(small.map(|sessions| Case::small(*sessions)))
            .collect()
    }
}

/// Runs the benchmark, prints its table, and writes the requested files.
///
/// A peer that is not installed is skipped, with a note on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails. Figures beyond their bars are not an error.
pub fn run(args: &GatewayArgs) -> Result<(), BenchError> {
    let plan = Plan::of(args);
    let base = args.common.base();
    let vere = peer::program(args.common.vere.as_deref())?;
    let report = measure_all(&plan, &vere, &base)?;
    args.common
        .publish(&report.table(), &report.json(), &report.page())?;
    Ok(())
}

/// All systems that run at once.
struct Systems {
    sink: RunningSink,
    noop: NoopRelay,
    peers: Vec<Peer>,
}

impl Systems {
    fn start(
        plan: &Plan,
        vere: &Path,
        base: &Path,
        header: &mut Header,
    ) -> Result<Self, BenchError> {
        let sink = RunningSink::start(SinkOptions::remembering())?;
        let next_hop = sink.handle().address();
        let noop = NoopRelay::start(next_hop).map_err(BenchError::of("no-op relay"))?;
        let setups = if plan.full {
            &PostfixSetup::ALL[..]
        } else {
            &[PostfixSetup::Tuned]
        };
        let setups = setups.iter();
        let mut started: Vec<_> = setups
            .map(|setup| Peer::postfix(*setup, next_hop, base))
            .collect();
        started.push(Peer::vere(vere, next_hop, base));
        let mut peers = Vec::new();
        for peer in started {
            peers.extend(there(peer, header)?);
        }
        Ok(Self { sink, noop, peers })
    }

    fn targets(&self, plan: &Plan) -> Vec<Target> {
        let limit = |name: &str, address, account: &CpuAccount| Target {
            name: name.to_owned(),
            address,
            account: account.clone(),
            send: plan.send_limit,
            is_limit: true,
        };
        let mut targets = vec![
            limit(
                "sink alone",
                self.sink.handle().address(),
                self.sink.account(),
            ),
            limit("no-op relay", self.noop.address(), self.noop.account()),
        ];
        let peers = self.peers.iter();
        targets.extend(peers.map(|peer| Target::of(peer.name(), peer, plan.send)));
        targets
    }
}

fn measure_all(plan: &Plan, vere: &Path, base: &Path) -> Result<Report, BenchError> {
    let mut report = Report {
        header: Header::new("gateway", !plan.full, base),
        cases: Vec::new(),
        targets: Vec::new(),
        measurements: Vec::new(),
        rows: Vec::new(),
    };
    for part in &plan.parts {
        match part {
            Part::Load => loads(plan, vere, base, &mut report)?,
            Part::Dead => report.rows.extend(dead::run(&DeadPlan::FULL, vere, base)?),
            Part::Backlog => report.rows.extend(backlog::run(plan.backlog, vere, base)?),
            Part::Destinations => {
                let rows = destinations::run(&plan.destinations, vere, base)?;
                report.rows.extend(rows);
            }
        }
    }
    report.header.end();
    Ok(report)
}

/// The loads on all systems, in turns.
fn loads(plan: &Plan, vere: &Path, base: &Path, report: &mut Report) -> Result<(), BenchError> {
    let began = Instant::now();
    let systems = Systems::start(plan, vere, base, &mut report.header)?;
    report.targets = systems.targets(plan);
    report.cases = plan.cases();
    for round in 0..plan.rounds {
        for case in &report.cases {
            if began.elapsed() > plan.budget {
                let text = format!("round {round}, {} skipped: out of time", case.label);
                report.header.skip(text);
                continue;
            }
            for target in &report.targets {
                let measurement = measure(target, systems.sink.handle(), case)?;
                note(&measurement.line());
                report.measurements.push(measurement);
            }
        }
    }
    half_load(plan, &systems, report)?;
    Ok(())
}

/// Reply times while half as much comes as we take at most.
fn half_load(plan: &Plan, systems: &Systems, report: &mut Report) -> Result<(), BenchError> {
    let most = Case::mix(HALF_LOAD_SESSIONS).label;
    let ours = report.targets.iter().find(|target| target.name == OURS);
    let delivered = metric("delivered").and_then(|metric| report.median(metric, OURS, &most));
    let (Some(target), Some(delivered)) = (ours, delivered.filter(|_| plan.full)) else {
        return Ok(());
    };
    let case = Case::at_rate(HALF_LOAD_SESSIONS, delivered / 2.0);
    let mut runs = Vec::new();
    for _ in 0..plan.rounds {
        let measurement = measure(target, systems.sink.handle(), &case)?;
        note(&measurement.line());
        runs.push(measurement);
    }
    report.measurements.extend(runs);
    report.cases.push(case);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Plan, measure_all};
    use std::time::Duration;

    #[test]
    fn a_tiny_plan_gives_every_figure() {
        let base = crate::peer::folder(&std::env::temp_dir(), "vere-bench-test-").unwrap();
        let tiny = Plan {
            sessions: &[1, 4],
            rounds: 1,
            send: Duration::from_millis(100),
            send_limit: Duration::from_millis(100),
            budget: Duration::from_secs(60),
            ..Plan::quick()
        };
        let report = measure_all(&tiny, "/bin/false".as_ref(), base.path()).unwrap();
        assert!(
            report
                .header
                .skipped
                .iter()
                .any(|text| text.starts_with("vere "))
        );
        let json = report.json();
        assert_eq!(json["bench"], "gateway");
        let rows = json["rows"].as_array().unwrap();
        for name in ["sink alone", "no-op relay"] {
            for case in ["1 session", "4 sessions"] {
                let name = format!("{name}: delivered, {case}");
                let row = rows.iter().find(|row| row["name"] == *name).unwrap();
                assert!(row["value"].as_f64().unwrap() > 0.0, "{row}");
            }
        }
        assert!(
            report
                .measurements
                .iter()
                .all(|run| run.missing == 0 && run.doubled == 0)
        );
        let page = report.page();
        assert!(page.contains("<svg") && page.contains("no-op relay"));
        assert!(report.table().contains("no-op relay"));
    }
}
