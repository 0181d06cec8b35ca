//! Good mail while bounces rise (Figure 8 of the paper on spam-aware servers), in an open and in a closed loop.

use super::clients::Pace;
use super::measure::{Results, Run, Target, closed, load, run, unless_stopped};
use super::plan::Plan;
use super::visit::{Kind, Mix, falls_below, sessions_per_second};
use crate::error::BenchError;
use crate::output::note;
use crate::sink::RunningSink;

/// Good mail as a part of the capacity.
const PART: f64 = 0.1;

/// Percentage of good mail that must be delivered.
pub(super) const DELIVERED_MIN: f64 = 98.0;

/// The name of the figure for a ratio.
pub(super) fn delivered(ratio: f64) -> String {
    format!("bounces {ratio}: delivered")
}

/// Measures all systems, in turns for each ratio of bounces.
pub(super) fn measure(
    plan: &Plan,
    targets: &[Target],
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut rates = Vec::new();
    for target in targets.iter().filter(|target| target.system.delivers()) {
        let outcome = capacity(plan, target, sink, results);
        let rate = unless_stopped(outcome, target.system, &mut results.header)?;
        match rate {
            Some(rate) if rate * PART >= 1.0 => rates.push((target, rate * PART)),
            Some(_) => {
                let name = target.system.name();
                let text =
                    format!("{name}: bounces: it delivers less than 10 messages/s without them");
                results.header.skip(text);
            }
            None => {}
        }
    }
    for ratio in plan.ratios {
        for (target, good) in &rates {
            let outcome = open(plan, target, sink, (*good, *ratio), results);
            unless_stopped(outcome, target.system, &mut results.header)?;
        }
    }
    for (target, _) in &rates {
        let name = target.system.name();
        let figures = &mut results.figures;
        let points = plan.ratios.iter();
        let points = points.filter_map(|ratio| {
            let value = figures.median(name, &delivered(*ratio))?;
            Some((*ratio, value))
        });
        let points: Vec<_> = points.collect();
        let kept = falls_below(&points, DELIVERED_MIN).or(points.last().map(|(ratio, _)| *ratio));
        if let Some(kept) = kept {
            figures.add(name, "98 % delivered up to bounces of", kept, "of all");
        }
    }
    for ratio in plan.ratios {
        for (target, _) in &rates {
            let outcome = at_once(plan, target, sink, *ratio, results);
            unless_stopped(outcome, target.system, &mut results.header)?;
        }
    }
    Ok(())
}

/// Messages a second that a saturated system delivers, each with a separate connection.
fn capacity(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    results: &mut Results,
) -> Result<f64, BenchError> {
    let pace = Pace::AtOnce(plan.sessions);
    let load = load(target, pace, Mix::only(Kind::Good(1)), plan.storm / 2);
    let run = run(target, &load, sink, "capacity", &mut results.troubles)?;
    let (name, rate) = (target.system.name(), run.delivered_per_second());
    note(&format!("{name:<24} capacity {rate:.0} messages/s"));
    results.figures.add(name, "capacity", rate, "messages/s");
    Ok(rate)
}

/// Good mail at a fixed rate, among bounces.
fn open(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    (good, ratio): (f64, f64),
    results: &mut Results,
) -> Result<(), BenchError> {
    let pace = Pace::PerSecond(sessions_per_second(good, ratio));
    let load = load(target, pace, Mix::bounces(ratio), plan.storm);
    let what = format!("bounces {ratio}");
    let run = run(target, &load, sink, &what, &mut results.troubles)?;
    let name = target.system.name();
    let Some(part) = delivered_part(&run) else {
        return Ok(());
    };
    let millis = |quantile| run.visits.accepted_us.value_at_quantile(quantile) as f64 / 1e3;
    let (p50, p99) = (millis(0.5), millis(0.99));
    let busy = run.cpu.as_secs_f64() / run.visits.seconds() * 100.0;
    note(&format!(
        "{name:<24} {what:<13} {good:.0} good messages/s: {part:.1} % delivered, accepted p50 {p50:.1} ms p99 {p99:.1} \
         ms, CPU {busy:.0} %"
    ));
    let figures = &mut results.figures;
    figures.add(name, delivered(ratio), part, "%");
    if !run.visits.acked.is_empty() {
        figures.add(name, format!("{what}: accepted p50"), p50, "ms");
        figures.add(name, format!("{what}: accepted p99"), p99, "ms");
    }
    figures.add(name, format!("{what}: CPU"), busy, "% of a core");
    Ok(())
}

/// Percentage of the good mail that was due and arrived; `None` if none was due.
fn delivered_part(run: &Run) -> Option<f64> {
    let due = run.visits.good.due;
    (due > 0).then(|| run.arrived as f64 / due as f64 * 100.0)
}

/// Good mail of clients that begin a session as soon as one ends, as in the paper.
fn at_once(
    plan: &Plan,
    target: &Target,
    sink: &RunningSink,
    ratio: f64,
    results: &mut Results,
) -> Result<(), BenchError> {
    let load = closed(target, plan, Mix::bounces(ratio));
    let what = format!("closed loop, bounces {ratio}");
    let run = run(target, &load, sink, &what, &mut results.troubles)?;
    let rate = run.visits.good.done as f64 / run.visits.seconds();
    let name = target.system.name();
    note(&format!("{name:<24} {what}: {rate:.0} good messages/s"));
    let figure = format!("{what}: good mail");
    results.figures.add(name, figure, rate, "messages/s");
    Ok(())
}
