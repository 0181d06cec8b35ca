//! The size of a measurement, and its programs and messages.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::output::Common;

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

/// How much is measured.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) quick: bool,
    pub(super) parts: Vec<Part>,
    /// Only the system of a name, for a profile.
    pub(super) system: Option<String>,
    /// Octets of bodies.
    pub(super) sizes: Vec<usize>,
    pub(super) connections: &'static [usize],
    pub(super) rounds: usize,
    /// Time not counted, and counted, in each round.
    pub(super) warm: Duration,
    pub(super) time: Duration,
    /// Messages of the queue to read back, and the numbers of messages in a block.
    pub(super) recovered: u64,
    pub(super) blocks: &'static [u64],
    /// A longer recovery is extrapolated from the messages read until then, but for the largest blocks.
    pub(super) recovery_max: Duration,
    /// Messages of the killed node, and octets of their bodies.
    pub(super) killed: u64,
    pub(super) killed_size: usize,
    /// Messages of 10 KB within 2 GiB of memory.
    pub(super) limited: u64,
    /// How long a node is stopped or slow, and how often.
    pub(super) trouble: Duration,
    pub(super) trouble_rounds: usize,
}

impl Plan {
    pub(super) fn quick() -> Self {
        Self {
            quick: true,
            parts: vec![Part::Throughput, Part::Recovery, Part::Durability],
            rounds: 3,
            warm: Duration::from_millis(20),
            time: Duration::from_millis(45),
            recovery_max: Duration::from_millis(120),
            killed_size: 400,
            trouble_rounds: 1,
            ..Self::full()
        }
    }

    fn full() -> Self {
        Self {
            quick: false,
            parts: Part::value_variants().to_vec(),
            system: None,
            sizes: vec![400, 1_000, 2_000, 4_000, 10_000, 20_000],
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

    pub(super) fn of(args: &SpoolArgs) -> Self {
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

/// How client and servers are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// Client and servers on a common core.
    OneCore,
    /// The client on a separate core, servers on all other cores.
    Apart,
}

impl Placement {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::OneCore => "client and server on one core",
            Self::Apart => "client and server on different cores",
        }
    }
}

/// What is measured, the programs to start, and their placement.
pub(super) struct Setting<'a> {
    pub(super) plan: &'a Plan,
    pub(super) vere: &'a Path,
    /// The command of the benchmark itself; `None` in tests.
    pub(super) own: Option<&'a [OsString]>,
    pub(super) base: &'a Path,
    pub(super) placement: Placement,
}

/// An incompressible body.
pub(super) fn body(len: usize) -> Vec<u8> {
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
pub(super) fn kb(octets: usize) -> String {
    format!("{} KB", octets as f64 / 1e3)
}
