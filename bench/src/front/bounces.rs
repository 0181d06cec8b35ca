//! Sessions without mail on saturated systems: CPU time and context switches of each.

use super::measure::{Results, Target, closed, run, unless_stopped};
use super::plan::Plan;
use super::switches::Switches;
use super::visit::{Kind, Mix};
use crate::error::BenchError;
use crate::output::note;
use crate::sink::RunningSink;

/// The figures of bounced sessions, which have bars.
pub(super) const CPU: &str = "bounced: CPU";
pub(super) const SWITCHES: &str = "bounced: context switches";

/// The sessions, with their names in results.
const SESSIONS: [(&str, Kind); 3] = [
    ("bounced", Kind::Bounce),
    ("closed after EHLO", Kind::Hello),
    ("closed after the greeting", Kind::Connect),
];

/// Measures each kind of session on all systems, in turns.
pub(super) fn measure(
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    for _ in 0..plan.rounds {
        for (what, kind) in SESSIONS {
            for target in targets
                .iter()
                .filter(|target| !target.system.hands_over_only())
            {
                let outcome = one(plan, target, sink, what, kind, results);
                unless_stopped(outcome, target.system, &mut results.header)?;
            }
        }
    }
    Ok(())
}

fn one(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    what: &str,
    kind: Kind,
    results: &mut Results,
) -> Result<(), BenchError> {
    let watch = Switches::watch(target.peer.id()).map_err(BenchError::io("start a thread"))?;
    let load = closed(target, plan, Mix::only(kind));
    let outcome = run(target, &load, sink, what, &mut results.troubles);
    let switches = watch.end();
    let run = outcome?;
    let done = run.visits.vain.done;
    let Some(cpu) = run.cpu_us_of(done).filter(|_| run.is_whole()) else {
        return Ok(());
    };
    let name = target.system.name();
    let (each, rate) = (
        switches as f64 / done as f64,
        done as f64 / run.visits.seconds(),
    );
    note(&format!(
        "{name:<24} {what:<26} {rate:>7.0}/s, {cpu:>6.1} us CPU and {each:.2} switches each"
    ));
    let figures = &mut results.figures;
    figures.add(name, format!("{what}: CPU"), cpu, "us/session");
    figures.add(
        name,
        format!("{what}: context switches"),
        each,
        "per session",
    );
    figures.add(name, format!("{what}: sessions"), rate, "1/s");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_with_bars_are_measured() {
        let (what, _) = SESSIONS[0];
        assert_eq!(CPU, format!("{what}: CPU"));
        assert_eq!(SWITCHES, format!("{what}: context switches"));
    }
}
