//! Bounced sessions behind STARTTLS on saturated systems: CPU time of each.

use super::measure::{self, Results, Target, closed, run, unless_stopped};
use super::plan::Plan;
use super::systems::Site;
use super::tls::{Certificate, Tls};
use super::visit::{Kind, Mix};
use crate::error::BenchError;
use crate::output::note;
use crate::sink::RunningSink;

/// The figures with bars.
pub(super) const FULL: &str = "bounced within TLS, full handshake: CPU";
pub(super) const RESUMED: &str = "bounced within TLS, resumed: CPU";

/// Measures sessions with full handshakes and resumed ones on all systems that have TLS, in turns.
pub(super) fn measure(
    plan: &Plan,
    site: Site<'_>,
    sink: &RunningSink,
    results: &mut Results,
) -> Result<(), BenchError> {
    let made = BenchError::io("make a certificate");
    let certificate = Certificate::new(site.base).map_err(made)?;
    let clients = |resumes| {
        let made = BenchError::io("make clients of TLS");
        certificate.clients(plan.sessions, resumes).map_err(made)
    };
    let loads = [(FULL, clients(false)?), (RESUMED, clients(true)?)];
    let site = Site {
        certificate: Some(&certificate),
        ..site
    };
    let systems = plan.systems.iter().copied();
    let systems = systems.filter(|system| system.encrypts());
    let targets = measure::start(systems, &site, &mut results.header);
    for _ in 0..plan.rounds {
        for (what, tls) in &loads {
            for target in &targets {
                let outcome = one(plan, target, sink, (what, tls), results);
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
    (what, tls): (&str, &Tls),
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut load = closed(target, plan, Mix::only(Kind::Bounce));
    load.tls = Some(tls.clone());
    let run = run(target, &load, sink, what, &mut results.troubles)?;
    let done = run.visits.vain.done;
    let Some(cpu) = run.cpu_us_of(done).filter(|_| run.is_whole()) else {
        return Ok(());
    };
    let name = target.system.name();
    let rate = done as f64 / run.visits.seconds();
    let resumed = run.visits.resumed as f64 * 100.0 / done as f64;
    note(&format!(
        "{name:<24} {what:<40} {rate:>7.0}/s, {cpu:>6.1} us CPU each, {resumed:.0} % resumed"
    ));
    let short = what.trim_end_matches(": CPU");
    let figures = &mut results.figures;
    figures.add(name, what, cpu, "us/session");
    figures.add(name, format!("{short}: sessions"), rate, "1/s");
    figures.add(name, format!("{short}: share resumed"), resumed, "%");
    Ok(())
}
