//! `vere bench gateway`: messages relayed per second, CPU per message and reply times, against
//! Postfix and against what this machine can do at all.
//!
//! The systems run side by side and take turns, A B A B, so that what else the machine does falls
//! on all of them; every figure is the median of the rounds. A message counts as delivered when
//! the sink has it.

mod html;
mod measure;
mod report;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use crate::load::LoadError;
use crate::machine::Machine;
use crate::noop::NoopRelay;
use crate::peer::{Peer, PeerError, PostfixSetup};
use crate::process::CpuAccount;
use crate::sink::{RunningSink, SinkError, SinkOptions};

use measure::{Measurement, Target, measure};
use report::Report;

/// Measures the gateway: throughput, CPU per message and reply times, beside Postfix.
#[derive(Debug, Clone, Args)]
pub struct GatewayArgs {
    /// Stay below one minute.
    #[arg(long)]
    pub quick: bool,
    /// Write the figures as JSON to this file, "-" for standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the figures as a page with plots to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The program to measure; this one by default.
    #[arg(long, value_name = "PATH")]
    pub vere: Option<PathBuf>,
    /// Keep queues and spools below this folder: its file system decides what a sync costs.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Why a benchmark could not run to its end.
#[derive(Debug)]
pub enum BenchError {
    /// The sink.
    Sink(SinkError),
    /// The load generator.
    Load(LoadError),
    /// The no-op relay.
    Relay(io::Error),
    /// A CPU account could not be read: the system measured has probably died.
    Account {
        /// The system.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A system could not be started though it is there.
    Peer(PeerError),
    /// A result cannot be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(source) => source.fmt(f),
            Self::Load(source) => source.fmt(f),
            Self::Relay(source) => write!(f, "no-op relay: {source}"),
            Self::Account { name, source } => write!(f, "CPU time of {name}: {source}"),
            Self::Peer(source) => source.fmt(f),
            Self::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Sink(source) => Some(source),
            Self::Load(source) => Some(source),
            Self::Peer(source) => Some(source),
            Self::Relay(source) | Self::Account { source, .. } | Self::Write { source, .. } => {
                Some(source)
            }
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    sessions: &'static [usize],
    rounds: usize,
    /// How long mail is sent to a system in one round.
    send: Duration,
    /// The same for the rows that show the limit.
    send_limit: Duration,
    /// No round begins after this time.
    budget: Duration,
    shipped_too: bool,
}

impl Plan {
    const QUICK: Self = Self {
        sessions: &[1, 10, 50],
        rounds: 3,
        send: Duration::from_millis(800),
        send_limit: Duration::from_millis(300),
        budget: Duration::from_secs(50),
        shipped_too: false,
    };
    const FULL: Self = Self {
        sessions: &[1, 10, 50, 200],
        rounds: 3,
        send: Duration::from_secs(5),
        send_limit: Duration::from_secs(2),
        budget: Duration::from_secs(1800),
        shipped_too: true,
    };
}

/// Runs the benchmark, prints its table, and writes the files asked for.
///
/// A peer that is not installed is skipped, said on standard error and in the results.
///
/// # Errors
///
/// [`BenchError`] when a part of the benchmark itself fails. Figures that miss their bars are not
/// an error.
pub fn run(args: &GatewayArgs) -> Result<(), BenchError> {
    let plan = if args.quick { Plan::QUICK } else { Plan::FULL };
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let vere = match &args.vere {
        Some(path) => Some(path.clone()),
        None => std::env::current_exe().ok(),
    };
    let report = measure_all(&plan, vere.as_deref(), &base)?;
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        write(Path::new("-"), &report.table())?;
    }
    if let Some(path) = &args.json {
        write(path, &format!("{:#}\n", report.json()))?;
    }
    if let Some(path) = &args.html {
        write(path, &html::page(&report))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    let written = if path == Path::new("-") {
        io::stdout().lock().write_all(text.as_bytes())
    } else {
        std::fs::write(path, text)
    };
    written.map_err(|source| BenchError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Everything that runs at once.
struct Systems {
    sink: RunningSink,
    noop: NoopRelay,
    peers: Vec<Peer>,
    skipped: Vec<String>,
}

impl Systems {
    fn start(plan: &Plan, vere: Option<&Path>, base: &Path) -> Result<Self, BenchError> {
        let options = SinkOptions {
            remember: true,
            ..SinkOptions::default()
        };
        let sink = RunningSink::start(options).map_err(BenchError::Sink)?;
        let next_hop = sink.handle().address();
        let noop = NoopRelay::start(next_hop).map_err(BenchError::Relay)?;
        let mut started = vec![Peer::postfix(PostfixSetup::Tuned, next_hop, base)];
        if plan.shipped_too {
            started.push(Peer::postfix(PostfixSetup::AsShipped, next_hop, base));
        }
        if let Some(vere) = vere {
            started.push(Peer::vere(vere, next_hop, base));
        }
        let mut systems = Self {
            sink,
            noop,
            peers: Vec::new(),
            skipped: Vec::new(),
        };
        for peer in started {
            match peer {
                Ok(peer) => systems.peers.push(peer),
                Err(error @ (PeerError::Unavailable { .. } | PeerError::NotReady { .. })) => {
                    note(&error.to_string());
                    systems.skipped.push(error.to_string());
                }
                Err(error) => return Err(BenchError::Peer(error)),
            }
        }
        Ok(systems)
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
        targets.extend(self.peers.iter().map(|peer| Target {
            name: peer.name().to_owned(),
            address: peer.address(),
            account: peer.account(),
            send: plan.send,
            is_limit: false,
        }));
        targets
    }
}

fn measure_all(plan: &Plan, vere: Option<&Path>, base: &Path) -> Result<Report, BenchError> {
    let began = Instant::now();
    let machine = Machine::describe(base);
    let mut systems = Systems::start(plan, vere, base)?;
    let targets = systems.targets(plan);
    let mut measurements: Vec<Measurement> = Vec::new();
    for round in 0..plan.rounds {
        for sessions in plan.sessions {
            if began.elapsed() > plan.budget {
                let text = format!("round {round} with {sessions} sessions skipped: out of time");
                note(&text);
                systems.skipped.push(text);
                continue;
            }
            for target in &targets {
                let measurement = measure(target, systems.sink.handle(), *sessions)?;
                note(&measurement.line());
                measurements.push(measurement);
            }
        }
    }
    Ok(Report {
        machine,
        quick: !plan.shipped_too,
        seconds: began.elapsed().as_secs_f64(),
        sessions: plan.sessions.to_vec(),
        targets,
        measurements,
        skipped: std::mem::take(&mut systems.skipped),
    })
}

/// Tells whoever watches; the results themselves go elsewhere.
fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::{Plan, measure_all};
    use std::time::Duration;

    const TINY: Plan = Plan {
        sessions: &[1, 4],
        rounds: 1,
        send: Duration::from_millis(100),
        send_limit: Duration::from_millis(100),
        budget: Duration::from_secs(60),
        shipped_too: false,
    };

    #[test]
    fn a_tiny_plan_gives_every_figure() {
        let base = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(base.path(), mode).unwrap();
        let report = measure_all(&TINY, Some("/bin/false".as_ref()), base.path()).unwrap();
        assert!(report.skipped.iter().any(|text| text.starts_with("vere ")));
        let json = report.json();
        assert_eq!(json["bench"], "gateway");
        let rows = json["rows"].as_array().unwrap();
        for name in ["sink alone", "no-op relay"] {
            for sessions in [1, 4] {
                let name = format!("{name}: delivered, {sessions} sessions");
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
        let page = super::html::page(&report);
        assert!(page.contains("<svg") && page.contains("no-op relay"));
        assert!(report.table().contains("no-op relay"));
    }
}
