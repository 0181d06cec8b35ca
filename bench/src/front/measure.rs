//! The measurement of a load on a system.

use std::time::Duration;

use super::clients::{self, Load, Pace, Visits};
use super::plan::Plan;
use super::systems::{Site, System, started};
use super::visit::Mix;
use crate::arrivals::Arrivals;
use crate::error::BenchError;
use crate::figures::Figures;
use crate::output::{Header, note};
use crate::peer::Peer;
use crate::process::guard;
use crate::sink::RunningSink;

/// Time without an arrival after which missing messages are given up.
const STALL: Duration = Duration::from_secs(5);

/// Time of a system after its last session to clean up, on its account.
const SETTLE: Duration = Duration::from_millis(150);

/// Limit of the time of a session. A client over a long way with many recipients needs half a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// Late sessions of the generator are reported from this time on.
const LATE_MS: f64 = 100.0;

/// Everything found so far.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) header: Header,
    pub(super) figures: Figures,
    /// Failed sessions and lost messages, a line each.
    pub(super) troubles: Vec<String>,
}

/// A running system.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) system: System,
    pub(super) peer: Peer,
}

/// Starts systems; a system that does not start is skipped.
pub(super) fn start(
    systems: impl IntoIterator<Item = System>,
    site: &Site<'_>,
    header: &mut Header,
) -> Vec<Target> {
    let mut targets = Vec::new();
    for system in systems {
        if let Some(peer) = started(system, site, header) {
            targets.push(Target { system, peer });
        }
    }
    targets
}

/// A load on a target.
pub(super) fn load(target: &Target, pace: Pace, mix: Mix, time: Duration) -> Load {
    Load::new(target.peer.address(), pace, mix, time, PATIENCE)
}

/// Clients that saturate a target.
pub(super) fn closed(target: &Target, plan: &Plan, mix: Mix) -> Load {
    load(target, Pace::AtOnce(plan.sessions), mix, plan.time)
}

/// The outcome of a load.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) visits: Visits,
    pub(super) cpu: Duration,
    /// Different messages at the next hop.
    pub(super) arrived: u64,
    /// Seconds from the first session to the last arrival.
    pub(super) seconds: f64,
}

impl Run {
    /// Messages at the next hop a second.
    pub(super) fn delivered_per_second(&self) -> f64 {
        self.arrived as f64 / self.seconds.max(1e-6)
    }

    /// Whether next to all sessions went to their ends. Otherwise the CPU time of failed sessions would be on the account
    /// of the others.
    pub(super) fn is_whole(&self) -> bool {
        let (good, vain) = (self.visits.good, self.visits.vain);
        is_whole(good.due + vain.due, good.done + vain.done)
    }

    /// Microseconds of CPU time for each of `count`; `None` for none.
    pub(super) fn cpu_us_of(&self, count: u64) -> Option<f64> {
        (count > 0).then(|| self.cpu.as_secs_f64() * 1e6 / count as f64)
    }
}

/// Runs a load and waits until every accepted message has arrived; failures are noted as troubles.
///
/// # Errors
/// When the machine fails, the system has ended, or a signal ended the benchmark.
pub(super) fn run(
    target: &Target,
    load: &Load,
    sink: &RunningSink,
    what: &str,
    troubles: &mut Vec<String>,
) -> Result<Run, BenchError> {
    let name = target.system.name();
    let account = target.peer.account();
    let cpu = || {
        account
            .total()
            .map_err(BenchError::of(format!("CPU time of {name}")))
    };
    sink.handle().take_deliveries();
    let before = cpu()?;
    let visits = clients::run(load)?;
    if guard::is_stopped() {
        return Err(BenchError::Stopped);
    }
    let mut seconds = visits.seconds();
    let mut arrived = visits.good.done;
    if target.system.delivers() && !visits.acked.is_empty() {
        let arrivals = Arrivals::await_all(sink.handle(), load.run, &visits.acked, STALL);
        arrived = arrivals.by_id.len() as u64;
        if let Some(last) = arrivals.last {
            seconds = (last - visits.began).as_secs_f64();
        }
        let missing = arrivals.missing(&visits.acked).len();
        if missing > 0 {
            trouble(
                troubles,
                format!("{name}: {what}: {missing} accepted messages did not arrive"),
            );
        }
    }
    std::thread::sleep(SETTLE);
    let cpu = cpu()?.saturating_sub(before);
    let failures: Vec<String> = visits
        .failed
        .iter()
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    if !failures.is_empty() {
        let sessions = visits.good.due + visits.vain.due;
        let failures = failures.join(", ");
        trouble(
            troubles,
            format!("{name}: {what}: of {sessions} sessions failed {failures}"),
        );
    }
    let late = visits.late_us.value_at_quantile(0.99) as f64 / 1e3;
    if late > LATE_MS {
        trouble(
            troubles,
            format!("{name}: {what}: sessions began late, p99 {late:.0} ms"),
        );
    }
    Ok(Run {
        visits,
        cpu,
        arrived,
        seconds,
    })
}

/// Whether one session in a hundred failed at most, and one did not.
pub(super) fn is_whole(due: u64, done: u64) -> bool {
    done > 0 && (due - done.min(due)) * 100 <= due
}

pub(super) fn trouble(troubles: &mut Vec<String>, text: String) {
    note(&text);
    troubles.push(text);
}

/// The outcome of a measurement; a failure is noted, and only a signal ends the benchmark.
pub(super) fn unless_stopped<T>(
    outcome: Result<T, BenchError>,
    system: System,
    header: &mut Header,
) -> Result<Option<T>, BenchError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(BenchError::Stopped) => Err(BenchError::Stopped),
        Err(_) if guard::is_stopped() => Err(BenchError::Stopped),
        Err(error) => {
            header.skip(format!("{}: {error}", system.name()));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn one_failed_session_in_a_hundred_is_overlooked() {
        assert!(is_whole(100, 99) && is_whole(1, 1));
        assert!(!is_whole(100, 98) && !is_whole(50, 49) && !is_whole(0, 0));
    }
}
