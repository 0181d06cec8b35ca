//! The cost of trust: sessions with an end behind the first accepted recipient, beside sessions with an end behind a refused
//! recipient.
//!
//! Both kinds have the same commands and as many replies. Only the accepted recipient makes a front give the connection
//! to another process, so the difference is the cost of the hand-over, with the notices and the end.

use super::clients::Pace;
use super::measure::{Results, Target, load, run, unless_stopped};
use super::plan::Plan;
use super::visit::{Kind, Mix};
use crate::error::BenchError;
use crate::output::note;
use crate::sink::RunningSink;

/// The figure with a bar.
pub(super) const CPU: &str = "hand-over: CPU";

/// Highest CPU time of a hand-over, in microseconds.
pub(super) const CPU_MAX: f64 = 20.0;

const TIME: &str = "hand-over: time";

/// What a session costs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Microseconds of CPU time.
    cpu: f64,
    /// Microseconds by the clock, from the first session to the end of the last one.
    time: f64,
}

/// Measures both kinds of session on all systems, in turns.
pub(super) fn measure(
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    for _ in 0..plan.rounds {
        for target in targets {
            let outcome = round(plan, target, sink, results);
            unless_stopped(outcome, target.system, &mut results.header)?;
        }
    }
    Ok(())
}

/// CPU time comes from a saturated system, and the time by the clock from a system with a single client.
fn round(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut pair = |sessions: usize| {
        let mut one = |kind| cost(plan, target, sink, (kind, sessions), results);
        Ok::<_, BenchError>((one(Kind::Bounce)?, one(Kind::Trusted)?))
    };
    let (busy, calm) = (pair(plan.sessions)?, pair(1)?);
    let name = target.system.name();
    let figures = &mut results.figures;
    if let (Some(bounce), Some(trusted)) = busy {
        let more = trusted.cpu - bounce.cpu;
        note(&format!(
            "{name:<24} trusted {:>6.1} us CPU, bounced {:>6.1}, hand-over {more:.1}",
            trusted.cpu, bounce.cpu
        ));
        figures.add(name, "trusted: CPU", trusted.cpu, "us/session");
        figures.add(name, CPU, more, "us");
    }
    if let (Some(bounce), Some(trusted)) = calm {
        figures.add(name, TIME, trusted.time - bounce.time, "us");
    }
    Ok(())
}

/// The cost of a session of a kind; `None` when sessions failed.
fn cost(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    (kind, sessions): (Kind, usize),
    results: &mut Results,
) -> Result<Option<Cost>, BenchError> {
    let pace = Pace::AtOnce(sessions);
    let load = load(target, pace, Mix::only(kind), plan.time);
    let run = run(target, &load, sink, "hand-over", &mut results.troubles)?;
    let done = run.visits.vain.done;
    let cpu = run.cpu_us_of(done).filter(|_| run.is_whole());
    Ok(cpu.map(|cpu| Cost {
        cpu,
        time: run.visits.seconds() * 1e6 / done as f64,
    }))
}
