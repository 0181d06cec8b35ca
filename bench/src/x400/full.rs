//! A long queue: filled while the sink is away, started with, and drained.

use std::path::Path;
use std::time::{Duration, Instant};

use super::load::{Loads, source};
use super::plan::{Case, Plan};
use super::results::{Course, Results};
use super::system::{Child, Shape, System, check};
use crate::error::BenchError;

/// Octets of a content.
const SIZE: usize = 10_000;
/// Time without progress after which the rest is given up.
const STALL: Duration = Duration::from_secs(60);
/// Time between two points of a course.
const POINT: Duration = Duration::from_secs(1);
/// Parts of a course; the rates of the first and the last parts are compared.
const PARTS: usize = 10;
const COMPARED: usize = 3;

/// The figures with bars.
pub(super) const FILL: &str = "fill";
pub(super) const DRAIN: &str = "drain";
pub(super) const MEMORY: &str = "memory of all processes at most";
pub(super) const RESTART: &str = "restart with the full queue until a message is accepted";
pub(super) const MISSING: &str = "missing messages";

/// The name of a figure of the long queue.
pub(super) fn figure(queued: u64, what: &str) -> String {
    format!("{queued} queued: {what}")
}

/// The rate of some tenths of a course.
pub(super) fn least(of: &str) -> String {
    format!("{of}, slowest tenth")
}

pub(super) fn first(of: &str) -> String {
    format!("{of}, first {COMPARED} tenths")
}

pub(super) fn last(of: &str) -> String {
    format!("{of}, last {COMPARED} tenths")
}

/// Fills, starts anew and drains.
pub(super) fn measure(
    plan: &Plan,
    shape: Shape,
    vere: &Path,
    base: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut system = System::start(vere, base, shape, 1)?;
    let (column, queued, case) = (shape.name(), plan.queued, Case::of(SIZE));
    let mut filling = source(&system, &case, Some((0, queued)))?;
    filling.remote.set_going(true);
    let counts = || filling.remote.counts().messages;
    let mut run = Run::new(&system, queued, queued);
    let accepted = run.follow(counts)?;
    run.tell(column, FILL, results);
    let memory = run.memory;
    drop(filling);

    let begun = system.restart()?;
    let mut one = source(
        &system,
        &Case {
            sources: 1,
            associations: 1,
            ..case
        },
        Some((queued, 1)),
    )?;
    one.remote.set_going(true);
    let seconds = await_one(&system, &one, begun)?;
    results.add(column, figure(queued, RESTART), seconds, "s");
    let accepted = accepted + one.remote.counts().messages;
    drop(one);

    let loads = Loads::new(&system, column)?;
    let mut run = Run::new(&system, queued, accepted);
    let arrived = run.follow(|| loads.taken())?;
    run.tell(column, DRAIN, results);
    let memory = memory.max(run.memory);
    results.add(column, figure(queued, MEMORY), memory, "MB");
    let missing = accepted.saturating_sub(arrived) as f64;
    results.add(column, figure(queued, MISSING), missing, "messages");
    if arrived > accepted {
        let doubled = arrived - accepted;
        results.trouble(format!("{column}: {doubled} messages came twice"));
    }
    Ok(())
}

/// Seconds until a message is confirmed.
fn await_one(system: &System, one: &Child, begun: Instant) -> Result<f64, BenchError> {
    while one.remote.counts().messages == 0 {
        check(system)?;
        if begun.elapsed() > 5 * STALL {
            return Err(BenchError::protocol(
                "the MTA accepts nothing after its restart",
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// A count that grows to an end.
struct Run<'a> {
    system: &'a System,
    /// The messages of the queue, which names the figures.
    queued: u64,
    end: u64,
    /// Time and count.
    points: Vec<(Duration, u64)>,
    /// The most memory, in MB.
    memory: f64,
}

impl<'a> Run<'a> {
    const fn new(system: &'a System, queued: u64, end: u64) -> Self {
        Self {
            system,
            queued,
            end,
            points: Vec::new(),
            memory: 0.0,
        }
    }

    /// Follows the count to its end, or until it stands still. Returns the count.
    fn follow(&mut self, count: impl Fn() -> u64) -> Result<u64, BenchError> {
        let begun = Instant::now();
        let (mut seen, mut progress, mut point) = (0, begun, begun);
        self.points.push((Duration::ZERO, count()));
        loop {
            check(self.system)?;
            let now = count();
            let is_end = now >= self.end || progress.elapsed() > STALL;
            if now > seen {
                (seen, progress) = (now, Instant::now());
            }
            if is_end || point.elapsed() >= POINT {
                point = Instant::now();
                self.points.push((begun.elapsed(), now));
                self.memory = self.memory.max(self.system.memory_mb());
            }
            if is_end {
                return Ok(now);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn tell(&self, column: &'static str, what: &str, results: &mut Results) {
        let mut add = |name: String, value| {
            results.add(column, figure(self.queued, &name), value, "messages/s");
        };
        let rates = tenths(&self.points);
        let mean = |rates: &[f64]| harmonic(rates);
        add(what.to_owned(), mean(&rates));
        add(least(what), rates.iter().copied().fold(f64::MAX, f64::min));
        add(first(what), mean(&rates[..COMPARED.min(rates.len())]));
        add(
            last(what),
            mean(&rates[rates.len().saturating_sub(COMPARED)..]),
        );
        results.courses.push(Course {
            name: format!("{column}: {what}"),
            rates: course(&self.points),
        });
    }
}

/// The rates of ten equal parts of the messages.
fn tenths(points: &[(Duration, u64)]) -> Vec<f64> {
    let count = |place: Option<&(Duration, u64)>| place.map_or(0, |(_, count)| *count);
    let (low, high) = (count(points.first()), count(points.last()));
    let part = high.saturating_sub(low) as f64 / PARTS as f64;
    let time = |number: usize| time_of(points, low as f64 + part * number as f64);
    let rate = |number: usize| part / (time(number + 1) - time(number)).max(1e-9);
    (0..PARTS).map(rate).collect()
}

/// Seconds until a count was reached, between the points around it.
fn time_of(points: &[(Duration, u64)], wanted: f64) -> f64 {
    let pairs = points.iter().zip(points.iter().skip(1));
    for ((from, low), (to, high)) in pairs {
        let (low, high) = (*low as f64, *high as f64);
        if high >= wanted && high > low {
            let part = ((wanted - low) / (high - low)).clamp(0.0, 1.0);
            let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
            return from + part * (to - from);
        }
    }
    points.last().map_or(0.0, |(time, _)| time.as_secs_f64())
}

/// The rate of several parts with equally many messages.
fn harmonic(rates: &[f64]) -> f64 {
    let times: f64 = rates.iter().map(|rate| 1.0 / rate.max(1e-9)).sum();
    rates.len() as f64 / times.max(1e-9)
}

/// The rate between each point and the next.
fn course(points: &[(Duration, u64)]) -> Vec<(Duration, f64)> {
    let pairs = points.iter().zip(points.iter().skip(1));
    let rate = |((from, low), (to, high)): (&(Duration, u64), &(Duration, u64))| {
        let seconds = to.saturating_sub(*from).as_secs_f64().max(1e-9);
        (*to, high.saturating_sub(*low) as f64 / seconds)
    };
    pairs.map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_cut_into_tenths_of_its_messages() {
        // 100 a second for ten seconds, then 50 a second for twenty.
        let points: Vec<_> = (0..=30_u64)
            .map(|second| {
                let slow = second.saturating_sub(10);
                (
                    Duration::from_secs(second),
                    100 * (second - slow) + 50 * slow,
                )
            })
            .collect();
        let rates = tenths(&points);
        assert!(
            rates[..5].iter().all(|rate| (rate - 100.0).abs() < 1e-6),
            "{rates:?}"
        );
        assert!(
            rates[5..].iter().all(|rate| (rate - 50.0).abs() < 1e-6),
            "{rates:?}"
        );
        assert!((harmonic(&rates) - 2_000.0 / 30.0).abs() < 1e-6);
        assert_eq!(course(&points).len(), 30);
        assert_eq!(tenths(&[]).len(), PARTS);
        assert!(harmonic(&[]).abs() < 1e-6);
    }
}
