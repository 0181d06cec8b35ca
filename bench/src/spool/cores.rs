//! Placement of client and servers: on a common core, or apart.
//!
//! Left alone, the scheduler puts both ends of a connection on one core or on two, as the machine's other load
//! permits, and throughput doubles or halves accordingly: a comparison needs a fixed placement. On one core
//! throughput is the inverse of the CPU time of both ends, which hardly depends on the machine's other load. The
//! better placement depends on the machine, so the floor is measured with both.

use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::drive::{Until, drive};
use super::plan::{Placement, Setting, body};
use super::report::Report;
use super::systems::{FLOOR, Floor, Target};
use crate::error::BenchError;

/// The calling thread.
const SELF: Pid = Pid::from_raw(0);

/// Rounds of the trial, and the time of each load.
const ROUNDS: usize = 5;
const WARM: Duration = Duration::from_millis(15);
const TIME: Duration = Duration::from_millis(30);

/// The placement with the faster floor, by medians of rounds in turns.
pub(super) fn choose(
    setting: &Setting<'_>,
    window: usize,
    report: &mut Report,
) -> Result<Placement, BenchError> {
    let what = |placement: Placement| format!("trial, 0.4 KB, {}", placement.text());
    let both = [Placement::OneCore, Placement::Apart];
    for _ in 0..ROUNDS {
        for placement in both {
            let cores = Cores::enter(placement);
            let floor = Floor::start(setting)?;
            cores.be_client();
            let target = Target::new(FLOOR, floor.address);
            let mut lanes = target.lanes(1, &body(400), window)?;
            let (warm, time) = (WARM, TIME);
            let load = drive(&mut lanes, window, Until::After { warm, time })?;
            report.add(&what(placement), "messages/s", FLOOR, load.rate());
        }
    }
    let rate = |placement| report.median(&what(placement), FLOOR).unwrap_or(0.0);
    if rate(Placement::Apart) > rate(Placement::OneCore) {
        Ok(Placement::Apart)
    } else {
        Ok(Placement::OneCore)
    }
}

/// The calling thread and its children keep to their cores until the value is dropped.
#[derive(Debug)]
pub(super) struct Cores {
    before: Option<CpuSet>,
    client: CpuSet,
}

impl Cores {
    /// Programs started by the calling thread from here on run on the servers' cores. Without the right to choose, or
    /// with a single core, the kernel's placement remains.
    pub(super) fn enter(placement: Placement) -> Self {
        let before = sched_getaffinity(SELF).ok();
        let allowed: Vec<usize> = (0..CpuSet::count())
            .filter(|core| before.is_some_and(|set| set.is_set(*core).unwrap_or(false)))
            .collect();
        let (client, servers) = match (allowed.split_last(), placement) {
            (Some((last, rest)), Placement::Apart) if !rest.is_empty() => (vec![*last], rest),
            (Some((last, _)), _) => (vec![*last], &allowed[allowed.len() - 1..]),
            (None, _) => (Vec::new(), &allowed[..]),
        };
        set(&cores(servers));
        Self {
            before,
            client: cores(&client),
        }
    }

    /// The calling thread runs on the client's core from here on.
    pub(super) fn be_client(&self) {
        set(&self.client);
    }
}

fn cores(numbers: &[usize]) -> CpuSet {
    let mut cores = CpuSet::new();
    for number in numbers {
        // The numbers come from a set of the same kind.
        let _ = cores.set(*number);
    }
    cores
}

fn set(cores: &CpuSet) {
    // After a refusal the thread keeps its placement.
    let _ = sched_setaffinity(SELF, cores);
}

impl Drop for Cores {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            set(before);
        }
    }
}
