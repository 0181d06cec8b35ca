//! Answers while a server reads its files again.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::ask::{self, Asked, End, PATIENCE};
use super::cpu;
use super::list::{self, Shape};
use super::plan::{DATA_SEED, Plan};
use super::questions::{self, Maps, Question};
use super::random::Random;
use super::results::Results;
use super::servers::{Limit, ListFile, Server, Site, System};
use crate::error::BenchError;
use crate::process::guard;

/// The figure with a bar.
pub(super) const MISSED: &str = "reload under load: missed answers";

/// Different questions.
const QUESTIONS: usize = 50_000;

/// Longest wait for the new data.
const RELOAD_MAX: Duration = Duration::from_secs(60);

/// Pause between two reloads: some servers compare times of files in whole seconds.
const PAUSE: Duration = Duration::from_millis(1_100);

/// Reloads each server under full load, in turns.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let listed = Shape::Neighbours.addresses(plan.listed, DATA_SEED);
    let maps = Maps::of(&listed);
    let clients = questions::clients(&listed, QUESTIONS, &mut Random::new(DATA_SEED));
    let questions: Vec<Question> = clients.iter().map(|client| maps.address(*client)).collect();
    for system in System::ALL {
        let file = ListFile::of(&listed, site)?;
        let probe = maps.address(listed[0]);
        let server = Server::started(
            system,
            site,
            &file.path,
            Limit::Off,
            &probe,
            &mut results.header,
        );
        let Some(server) = server else { continue };
        let name = system.name();
        let (asked, reloads) = under_load(plan, &server, &questions, &file.path, &listed)?;
        if asked.wrong > 0 {
            cpu::check(name, "reload", &asked, results);
        }
        let figures = &mut results.figures;
        figures.add(name, MISSED, asked.missed as f64, "answers");
        let slowest = asked.slowest.as_secs_f64() * 1e3;
        figures.add(name, "reload under load: slowest answer", slowest, "ms");
        for time in reloads {
            let seconds = time.as_secs_f64();
            figures.add(name, "reload under load: until the new data", seconds, "s");
        }
        if guard::is_stopped() {
            return Err(BenchError::Stopped);
        }
    }
    Ok(())
}

/// Asks without a pause while the file changes and the server reads it; returns the time of each reload.
fn under_load(
    plan: &Plan,
    server: &Server,
    questions: &[Question],
    file: &Path,
    listed: &[Ipv4Addr],
) -> Result<(Asked, Vec<Duration>), BenchError> {
    let is_over = AtomicBool::new(false);
    let mut all = listed.to_vec();
    std::thread::scope(|scope| {
        let load =
            scope.spawn(|| ask::load(server.address, questions, End::When(&is_over), PATIENCE));
        let mut reload = || {
            let mut times = Vec::new();
            for number in 0..plan.reloads {
                std::thread::sleep(PAUSE);
                // No trace has an address in this network.
                let fresh = Ipv4Addr::new(5, 5, 5, number);
                all.push(fresh);
                list::write(file, &all)?;
                times.push(once(server, fresh)?);
            }
            std::thread::sleep(PAUSE);
            Ok(times)
        };
        let times = reload();
        is_over.store(true, Ordering::Relaxed);
        let asked = load
            .join()
            .map_err(|_| std::io::Error::other("the load panicked"));
        let asked = asked.and_then(|asked| asked);
        let what = format!("reload of {}", server.system.name());
        match (asked, times) {
            (Ok(asked), Ok(times)) => Ok((asked, times)),
            (Err(error), _) | (_, Err(error)) => Err(BenchError::of(what)(error)),
        }
    })
}

/// Has the server read its file, and waits for the answer of a new address.
fn once(server: &Server, fresh: Ipv4Addr) -> std::io::Result<Duration> {
    let probe = Maps::of(&[fresh]).address(fresh);
    let began = Instant::now();
    server.reload()?;
    while !server.answers(&probe) {
        if began.elapsed() > RELOAD_MAX {
            return Err(std::io::Error::other(
                "the server has not read its file again",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(began.elapsed())
}
