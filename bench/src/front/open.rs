//! Many silent connections of unknown clients: memory of the system, and the wait of the next client for its greeting.

use std::time::{Duration, Instant};

use super::measure::{Results, Target};
use super::plan::Plan;
use super::systems::{Site, started};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::output::{Header, note};
use crate::process::guard;
use crate::store::usage;
use crate::trouble::{Crowd, Scripts};
use crate::wire::Dialogue;

/// The figures with bars.
pub(super) const HELD: &str = "open: held of those wanted";
pub(super) const MEMORY: &str = "open: memory";
pub(super) const GREETING: &str = "open: next greeting p99";

const POLL: Duration = Duration::from_millis(250);

/// Number of clients without a greeting after which no further client comes.
const SILENT_MAX: usize = 3;

/// Octets of a KiB, and of a megabyte.
const KIB: f64 = 1024.0;
const MB: f64 = 1e6;

/// Measures each system alone and fresh.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let systems = plan.systems.iter();
    for system in systems.filter(|system| !system.hands_over_only()) {
        let Some(peer) = started(*system, site, &mut results.header) else {
            continue;
        };
        let target = Target {
            system: *system,
            peer,
        };
        one(plan, &target, results)?;
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
    }
    Ok(())
}

fn one(plan: &Plan, target: &Target, results: &mut Results) -> Result<(), BenchError> {
    let before = memory(target);
    let scripts = Scripts::silent(target.peer.address());
    let crowd = Crowd::gather(scripts, plan.connections).map_err(BenchError::io("make a crowd"))?;
    let gathered = Instant::now();
    let mut most = watch(target, plan.gather_max, || crowd.is_settled());
    let gathered = gathered.elapsed();
    most = most.max(watch(target, plan.hold, || false));
    let held = crowd.counts().holding;
    let greetings = Greetings::ask(target, plan);
    most = most.max(memory(target));
    let ended = crowd.end();
    let name = target.system.name();
    let figures = &mut results.figures;
    figures.add(name, "open: held", held as f64, "connections");
    let part = held as f64 / plan.connections.max(1) as f64 * 100.0;
    figures.add(name, HELD, part, "%");
    figures.add(name, MEMORY, most, "MB");
    let each = (most - before).max(0.0) * MB / held.max(1) as f64;
    figures.add(name, "open: memory of a connection", each, "bytes");
    greetings.report(name, figures, &mut results.header);
    note(&format!(
        "{name:<24} {held} open after {:.1} s, {most:.0} MB ({before:.0} MB before), {}",
        gathered.as_secs_f64(),
        greetings.line(),
    ));
    for (said, count) in &ended.ended {
        results
            .troubles
            .push(format!("{name}: open: {count} connections ended: {said}"));
    }
    Ok(())
}

/// Watches the memory of a system until something is so, or the time is up; returns the largest reading.
fn watch(target: &Target, patience: Duration, done: impl Fn() -> bool) -> f64 {
    let until = Instant::now() + patience;
    let mut most = memory(target);
    while Instant::now() < until && !done() && !guard::is_stopped() {
        std::thread::sleep(POLL);
        most = most.max(memory(target));
    }
    most
}

/// Proportional memory of all processes of a system, in megabytes.
fn memory(target: &Target) -> f64 {
    let processes = target.peer.processes().unwrap_or_default();
    usage::memory(&processes) as f64 * KIB / MB
}

/// Greetings of clients in sequence.
#[derive(Debug, Default)]
struct Greetings {
    /// Longest wait of a client.
    patience: Duration,
    /// Milliseconds from connect to greeting, from the shortest.
    millis: Vec<f64>,
    /// Why clients got no greeting.
    failed: Vec<String>,
}

impl Greetings {
    fn ask(target: &Target, plan: &Plan) -> Self {
        let mut greetings = Self {
            patience: plan.greeting_max,
            ..Self::default()
        };
        for _ in 0..plan.probes {
            if greetings.failed.len() >= SILENT_MAX || guard::is_stopped() {
                break;
            }
            let began = Instant::now();
            match Dialogue::connect(target.peer.address(), plan.greeting_max) {
                Ok(mut client) => {
                    let millis = began.elapsed().as_secs_f64() * 1e3;
                    greetings.millis.push(millis);
                    // The figure is known; the end of the session is a courtesy.
                    let _ = client.ask("QUIT\r\n", "221");
                }
                Err(error) => greetings.failed.push(error.to_string()),
            }
        }
        greetings.millis.sort_by(f64::total_cmp);
        greetings
    }

    /// The time that a part of the clients did not exceed.
    fn quantile(&self, part: f64) -> Option<f64> {
        let rank = (self.millis.len() as f64 * part).ceil() as usize;
        self.millis.get(rank.saturating_sub(1)).copied()
    }

    /// Adds the figures. A client without a greeting waited at least as long as its patience lasted.
    fn report(&self, name: &'static str, figures: &mut Figures, header: &mut Header) {
        for (figure, part) in [("open: next greeting p50", 0.5), (GREETING, 0.99)] {
            let value = match self.failed.is_empty() {
                true => self.quantile(part),
                false => Some(self.patience.as_secs_f64() * 1e3),
            };
            if let Some(value) = value {
                figures.add(name, figure, value, "ms");
            }
        }
        if let Some(reason) = self.failed.first() {
            let count = self.failed.len();
            header.skip(format!(
                "{name}: open: {count} clients got no greeting within {:?} ({reason})",
                self.patience
            ));
        }
    }

    fn line(&self) -> String {
        match (self.quantile(0.5), self.quantile(0.99)) {
            (Some(p50), Some(p99)) if self.failed.is_empty() => {
                format!("next greeting p50 {p50:.1} ms p99 {p99:.1} ms")
            }
            _ => format!("{} clients without a greeting", self.failed.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_of_clients() {
        let greetings = Greetings {
            millis: (1..=100).map(f64::from).collect(),
            ..Greetings::default()
        };
        assert_eq!(greetings.quantile(0.5), Some(50.0));
        assert_eq!(greetings.quantile(0.99), Some(99.0));
        assert_eq!(Greetings::default().quantile(0.99), None);
    }

    #[test]
    fn a_silent_client_is_a_figure_at_the_end_of_its_patience() {
        let greetings = Greetings {
            patience: Duration::from_secs(5),
            millis: vec![1.0],
            failed: vec!["timed out".to_owned()],
        };
        let mut figures = Figures::default();
        let mut header = Header::new("front", true, "/".as_ref());
        greetings.report("a", &mut figures, &mut header);
        assert_eq!(figures.median("a", GREETING), Some(5_000.0));
        assert_eq!(header.skipped.len(), 1);
    }
}
