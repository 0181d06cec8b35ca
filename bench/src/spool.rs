//! `vere-bench spool`: the paper's Figures 4 and 6 against memcached, Redis and the limits of the machine, and the
//! cost of durability.
//!
//! All servers run side by side and take turns, A B A B; every figure is the median of the rounds. A single client
//! loop drives all servers, with equal octets in flight.

mod cores;
mod drive;
mod durable;
mod fixed;
mod floor;
mod floor_wire;
mod html;
mod limit;
mod recover;
mod report;
mod systems;
mod throughput;
mod trouble;
mod vere_wire;
mod writer;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::iter;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::output::{Common, Header, WriteError, note};
use crate::peer::{self, PeerError};

use cores::Placement;
use report::Report;

/// Measures a spool node: store and delete, recovery, restart, beside memcached and Redis.
#[derive(Debug, Clone, Args)]
pub struct SpoolArgs {
    /// Arguments of all benchmarks.
    #[command(flatten)]
    pub common: Common,
    /// Measure only this part.
    #[arg(long, value_name = "PART")]
    pub only: Option<Part>,
    /// Measure only throughput, only of this system (floor, vere, ...): for a profile.
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,
    /// Measure only throughput, only with bodies of this size.
    #[arg(long, value_name = "OCTETS")]
    pub size: Option<usize>,
    /// Run only the bare server of the comparisons, at this address.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub serve_floor: Option<SocketAddr>,
}

/// A part of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Figure 4: store and delete.
    Throughput,
    /// Figure 6, and memory.
    Recovery,
    /// The synced log, and a killed node.
    Durability,
    /// 1,000,000 x 10 KB within 2 GiB of memory; not with `--quick` unless asked for.
    Limit,
    /// Mail while a node is stopped or slow; not with `--quick` unless asked for.
    Trouble,
}

/// Reason for the end of an incomplete benchmark.
#[derive(Debug)]
pub enum SpoolBenchError {
    /// The system refused something.
    Io {
        /// The failed step.
        what: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A server answered against its protocol.
    Protocol(String),
    /// An available server could not be started.
    Peer(PeerError),
    /// A result cannot be written.
    Write(WriteError),
}

impl SpoolBenchError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }
}

impl fmt::Display for SpoolBenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, source } => write!(f, "cannot {what}: {source}"),
            Self::Protocol(text) => f.write_str(text),
            Self::Peer(source) => source.fmt(f),
            Self::Write(source) => source.fmt(f),
        }
    }
}

impl std::error::Error for SpoolBenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Write(source) => Some(source),
            Self::Peer(source) => Some(source),
            Self::Protocol(_) => None,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
struct Plan {
    quick: bool,
    parts: Vec<Part>,
    /// Only the system of a name, for a profile.
    system: Option<String>,
    /// Octets of bodies.
    sizes: Vec<usize>,
    connections: &'static [usize],
    rounds: usize,
    /// Time not counted, and counted, in each round.
    warm: Duration,
    time: Duration,
    /// Messages of the queue to read back, and the numbers of messages in a block.
    recovered: u64,
    blocks: &'static [u64],
    /// A longer recovery is extrapolated from the messages read until then, but for the largest blocks.
    recovery_max: Duration,
    /// Messages of the killed node, and octets of their bodies.
    killed: u64,
    killed_size: usize,
    /// Messages of 10 KB within 2 GiB of memory.
    limited: u64,
    /// How long a node is stopped or slow, and how often.
    trouble: Duration,
    trouble_rounds: usize,
}

impl Plan {
    const SIZES: &'static [usize] = &[400, 1_000, 2_000, 4_000, 10_000, 20_000];
    fn quick() -> Self {
        Self {
            quick: true,
            parts: vec![Part::Throughput, Part::Recovery, Part::Durability],
            system: None,
            sizes: Self::SIZES.to_vec(),
            connections: &[1, 50],
            rounds: 3,
            warm: Duration::from_millis(20),
            time: Duration::from_millis(45),
            recovered: 500_000,
            blocks: &[1, 10, 100, 1_000],
            recovery_max: Duration::from_millis(120),
            killed: 1_000_000,
            killed_size: 400,
            limited: 1_000_000,
            trouble: Duration::from_secs(10),
            trouble_rounds: 1,
        }
    }

    fn full() -> Self {
        Self {
            quick: false,
            parts: Part::value_variants().to_vec(),
            system: None,
            sizes: Self::SIZES.to_vec(),
            connections: &[1, 50],
            rounds: 5,
            warm: Duration::from_millis(200),
            time: Duration::from_millis(800),
            recovered: 500_000,
            blocks: &[1, 10, 100, 1_000],
            recovery_max: Duration::from_secs(2),
            killed: 1_000_000,
            killed_size: 1_000,
            limited: 1_000_000,
            trouble: Duration::from_secs(10),
            trouble_rounds: 3,
        }
    }

    fn of(args: &SpoolArgs) -> Self {
        let mut plan = if args.common.quick {
            Self::quick()
        } else {
            Self::full()
        };
        plan.system.clone_from(&args.system);
        if let Some(part) = args.only {
            plan.parts = vec![part];
        } else if args.system.is_some() || args.size.is_some() {
            plan.parts = vec![Part::Throughput];
        }
        if let Some(size) = args.size {
            plan.sizes = vec![size];
        }
        plan
    }
}

/// Runs the benchmark, prints its tables, and writes the requested files.
///
/// A peer that is not installed is skipped, with a note on standard error and in the results.
///
/// # Errors
///
/// [`SpoolBenchError`] when a part of the benchmark itself fails. Figures beyond their bars are not an error.
pub fn run(args: &SpoolArgs) -> Result<(), SpoolBenchError> {
    if let Some(address) = args.serve_floor {
        let served = TcpListener::bind(address).and_then(floor::serve);
        return served.map_err(SpoolBenchError::io("be the floor"));
    }
    let plan = Plan::of(args);
    let base = args.common.base();
    let own = std::env::current_exe().map_err(SpoolBenchError::io("find this program"))?;
    let vere = peer::program(args.common.vere.as_deref()).map_err(SpoolBenchError::Peer)?;
    let arguments = std::env::args_os().skip(1);
    let again: Vec<OsString> = iter::once(own.into()).chain(arguments).collect();
    let setting = Setting {
        vere: Some(&vere),
        own: Some(&again),
        base: &base,
        placement: Placement::OneCore,
    };
    let report = measure_all(&plan, setting)?;
    args.common
        .publish(&report.table(), &report.json(), &html::page(&report))
        .map_err(SpoolBenchError::Write)
}

fn measure_all(plan: &Plan, mut setting: Setting<'_>) -> Result<Report, SpoolBenchError> {
    let began = Instant::now();
    let mut report = Report::new(Header::new("spool", plan.quick, setting.base));
    setting.placement = Placement::choose(&setting, throughput::WINDOW, &mut report)?;
    note(setting.placement.text());
    report.placement = Some(setting.placement.text());
    let parts: [(Part, Measure); 5] = [
        (Part::Throughput, throughput::measure),
        (Part::Recovery, recover::measure),
        (Part::Durability, durable::measure),
        (Part::Limit, limit::measure),
        (Part::Trouble, trouble::measure),
    ];
    for (part, measure) in parts {
        if plan.parts.contains(&part) {
            measure(plan, &setting, &mut report)?;
            note(&format!(
                "{part:?}: done after {:.1} s",
                began.elapsed().as_secs_f64()
            ));
        }
    }
    report.header.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

type Measure = fn(&Plan, &Setting<'_>, &mut Report) -> Result<(), SpoolBenchError>;

/// The programs to start, and their placement.
struct Setting<'a> {
    vere: Option<&'a Path>,
    /// The command of the benchmark itself; `None` in tests.
    own: Option<&'a [OsString]>,
    base: &'a Path,
    placement: Placement,
}

/// The started server, if available; the report names an unavailable server as skipped.
fn there<T>(
    started: Result<T, PeerError>,
    report: &mut Report,
) -> Result<Option<T>, SpoolBenchError> {
    match started {
        Ok(server) => Ok(Some(server)),
        Err(error @ (PeerError::Unavailable { .. } | PeerError::NotReady { .. })) => {
            report.header.skip(error.to_string());
            Ok(None)
        }
        Err(error) => Err(SpoolBenchError::Peer(error)),
    }
}

/// An incompressible body.
fn body(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let octet = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Never a line end, so that text protocols carry the body as well.
        b'!' + (state >> 32) as u8 % 90
    };
    std::iter::repeat_with(octet).take(len).collect()
}

/// A size in the usual notation: 0.4 KB.
fn kb(octets: usize) -> String {
    format!("{} KB", octets as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::{Placement, Plan, Setting, html, measure_all};
    use std::time::Duration;

    #[test]
    fn a_tiny_plan_gives_every_figure_of_the_floor() {
        let base = tempfile::tempdir().unwrap();
        let plan = Plan {
            sizes: vec![400, 1_000, 20_000],
            rounds: 1,
            warm: Duration::ZERO,
            time: Duration::from_millis(20),
            recovered: 2_000,
            recovery_max: Duration::from_secs(60),
            connections: &[1, 3],
            ..Plan::quick()
        };
        let setting = Setting {
            vere: Some("/bin/false".as_ref()),
            own: None,
            base: base.path(),
            placement: Placement::OneCore,
        };
        let report = measure_all(&plan, setting).unwrap();
        assert!(
            report
                .header
                .skipped
                .iter()
                .any(|text| text.starts_with("vere "))
        );
        let json = report.json();
        assert_eq!(json["bench"], "spool");
        let rows = json["rows"].as_array().unwrap();
        for name in [
            "floor: store and delete, 1 KB, 1 connection",
            "floor: store and delete, 20 KB, 3 connections",
            "floor: store and delete, 20 KB, best window",
            "floor: recovery of 2000 x 1 KB in blocks of 1",
            "floor: recovery of 2000 x 1 KB in blocks of 1000",
            "loopback: recovery of 2000 x 1 KB in blocks of 1000",
        ] {
            let named = |row: &&serde_json::Value| {
                row["name"]
                    .as_str()
                    .is_some_and(|found| found.starts_with(name))
            };
            let row = rows.iter().find(named).unwrap();
            // On a starved machine possibly no message gets through in so short a time.
            assert!(row["value"].as_f64().unwrap() >= 0.0, "{row}");
        }
        let page = html::page(&report);
        assert!(page.contains("<svg") && page.contains("Figure 6"));
        assert!(report.table().contains("Figure 4"));
    }
}
