//! Accepted mail on saturated systems, for one recipient and for several; and the combined workload of the paper on
//! spam-aware servers (section 8).

use std::time::Duration;

use super::clients::{Load, Pace};
use super::distance::Distance;
use super::measure::{Results, Target, closed, load, run, unless_stopped};
use super::plan::Plan;
use super::visit::{Kind, Mix};
use crate::error::BenchError;
use crate::output::note;
use crate::sink::RunningSink;

/// The mix with bars: the messages of `gateway`, each for a single recipient over a separate connection.
const SINGLE: &str = "accepted";
pub(super) const CPU: &str = "accepted: CPU";
pub(super) const RATE: &str = "accepted: delivered";

/// Recipients of a message for several: the average of the paper's trace of spam.
const SEVERAL: usize = 7;

/// Messages over a connection, where there are many.
const SERIES: u32 = 20;

/// The delay of the paper's network, in each direction.
const DELAY: Duration = Duration::from_millis(30);

/// Recipients of spam and their shares, after Figure 4 of the paper: mostly 5 to 15, 7 on average.
const RECIPIENTS: [(usize, f64); 5] = [(1, 0.15), (5, 0.3), (7, 0.25), (10, 0.2), (15, 0.1)];

/// Shares of bounced sessions and of each kind of unfinished session, after Figure 3 of the paper.
const BOUNCED: f64 = 0.25;
const UNFINISHED: f64 = 0.05;

/// Accepted mail: a message for one recipient over each connection; the same, but three tenths for several recipients;
/// and many messages over each connection.
pub(super) fn measure(
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mixes = [
        (SINGLE, Mix::only(Kind::Good(1))),
        (
            "several recipients",
            Mix::new([(Kind::Good(1), 0.7), (Kind::Good(SEVERAL), 0.3)]),
        ),
        ("20 a connection", Mix::only(Kind::Series(SERIES))),
    ];
    for _ in 0..plan.rounds {
        for (what, mix) in &mixes {
            for target in targets.iter().filter(|target| target.system.delivers()) {
                let load = closed(target, plan, mix.clone());
                let outcome = one(target, &load, sink, what, results);
                unless_stopped(outcome, target.system, &mut results.header)?;
            }
        }
    }
    Ok(())
}

/// The combined workload: the clients are far away, so that each command and each reply takes its time.
pub(super) fn combined(
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    // A session has a dozen round trips: with less time no message would arrive.
    let time = plan.storm.max(DELAY * 40);
    for target in targets.iter().filter(|target| target.system.delivers()) {
        let mut load = load(target, Pace::AtOnce(plan.distant), combined_mix(), time);
        let address = target.peer.address();
        let distance = Distance::to(address, DELAY).map_err(BenchError::io("relay"))?;
        load.target = distance.address();
        let outcome = one(target, &load, sink, "combined", results);
        unless_stopped(outcome, target.system, &mut results.header)?;
    }
    Ok(())
}

fn combined_mix() -> Mix {
    let good = 1.0 - BOUNCED - 2.0 * UNFINISHED;
    let mail = RECIPIENTS.map(|(recipients, share)| (Kind::Good(recipients), share * good));
    let vain = [
        (Kind::Bounce, BOUNCED),
        (Kind::Hello, UNFINISHED),
        (Kind::Connect, UNFINISHED),
    ];
    Mix::new(mail.into_iter().chain(vain))
}

fn one(
    target: &Target,
    load: &Load,
    sink: &RunningSink,
    what: &str,
    results: &mut Results,
) -> Result<(), BenchError> {
    let run = run(target, load, sink, what, &mut results.troubles)?;
    let (name, rate) = (target.system.name(), run.delivered_per_second());
    let (cpu_figure, rate_figure) = figures_of(what);
    let figures = &mut results.figures;
    figures.add(name, rate_figure, rate, "messages/s");
    let cpu = run.cpu_us_of(run.arrived).filter(|_| run.is_whole());
    if let Some(cpu) = cpu {
        figures.add(name, cpu_figure, cpu, "us/message");
    }
    let cpu = cpu.map_or_else(String::new, |cpu| format!(", {cpu:.0} us CPU each"));
    note(&format!(
        "{name:<24} {what:<18} {rate:>7.0} messages/s{cpu}"
    ));
    Ok(())
}

/// The names of the figures of a mix: CPU time and rate.
fn figures_of(what: &str) -> (String, String) {
    (format!("{what}: CPU"), format!("{what}: delivered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_with_bars_are_measured() {
        assert_eq!(figures_of(SINGLE), (CPU.to_owned(), RATE.to_owned()));
    }

    #[test]
    fn the_combined_workload_has_the_shares_of_the_paper() {
        let mean: f64 = RECIPIENTS
            .iter()
            .map(|(count, share)| *count as f64 * share)
            .sum();
        assert!((mean - 7.0).abs() < 0.2, "{mean}");
        let shares: f64 = RECIPIENTS.iter().map(|(_, share)| share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        let mut mix = combined_mix();
        let kinds: Vec<Kind> = (0..2_000).map(|_| mix.next()).collect();
        let count = |wanted: Kind| kinds.iter().filter(|kind| **kind == wanted).count();
        assert_eq!((count(Kind::Bounce), count(Kind::Hello)), (500, 100));
        assert_eq!(kinds.iter().filter(|kind| kind.is_good()).count(), 1_300);
    }
}
