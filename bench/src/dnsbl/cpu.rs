//! CPU time of a query over UDP: A for addresses, AAAA for maps.

use super::ask::{self, Asked, End, PATIENCE};
use super::list::Shape;
use super::plan::{DATA_SEED, Plan};
use super::questions::{self, Maps, Question};
use super::random::Random;
use super::results::Results;
use super::servers::{Limit, ListFile, Server, Site, System};
use crate::error::BenchError;
use crate::process::guard;

/// The figures with bars.
pub(super) const ADDRESSES: &str = "A: CPU";
pub(super) const MAPS: &str = "AAAA: CPU";

/// Different questions of a kind.
const QUESTIONS: usize = 100_000;

/// Measures both servers and the bare responder in turns, on the same file.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let listed = Shape::Neighbours.addresses(plan.listed, DATA_SEED);
    let file = ListFile::of(&listed, site)?;
    let maps = Maps::of(&listed);
    let clients = questions::clients(&listed, QUESTIONS, &mut Random::new(DATA_SEED));
    let all = |question: fn(&Maps, std::net::Ipv4Addr) -> Question| -> Vec<Question> {
        clients
            .iter()
            .map(|client| question(&maps, *client))
            .collect()
    };
    let addresses = all(Maps::address);
    let (neighbours, unknown) = (all(Maps::neighbours), all(Maps::neighbours_unknown));
    let unlooked: Vec<Question> = addresses.iter().map(Question::unlooked).collect();
    let probe = maps.address(listed[0]);
    let start = |system| {
        Server::started(
            system,
            site,
            &file.path,
            Limit::Off,
            &probe,
            &mut results.header,
        )
    };
    let systems = System::ALL.into_iter().chain([System::Bare]);
    let servers: Vec<Server> = systems.filter_map(start).collect();
    for _ in 0..plan.rounds {
        for server in &servers {
            let questions = match server.system {
                System::Bare => &unlooked,
                _ => &addresses,
            };
            one(plan, server, "A", questions, results)?;
        }
        for server in &servers {
            let questions = match server.system {
                System::Ours => &neighbours,
                // A server without maps answers each with the absence of data or of the name.
                System::Rbldnsd => &unknown,
                System::Bare => continue,
            };
            one(plan, server, "AAAA", questions, results)?;
        }
    }
    Ok(())
}

fn one(
    plan: &Plan,
    server: &Server,
    kind: &str,
    questions: &[Question],
    results: &mut Results,
) -> Result<(), BenchError> {
    let name = server.system.name();
    let account = server.account();
    let cpu = || {
        account
            .total()
            .map_err(BenchError::of(format!("CPU time of {name}")))
    };
    let before = cpu()?;
    let end = End::Count(plan.queries);
    let asked = ask::load(server.address, questions, end, PATIENCE)
        .map_err(BenchError::of(format!("queries to {name}")))?;
    let cpu = cpu()?.saturating_sub(before);
    if guard::is_stopped() {
        return Err(BenchError::Stopped);
    }
    check(name, kind, &asked, results);
    if asked.right() > 0 {
        let each = cpu.as_secs_f64() * 1e6 / asked.right() as f64;
        results
            .figures
            .add(name, format!("{kind}: CPU"), each, "us/query");
        results
            .figures
            .add(name, format!("{kind}: answers"), asked.per_second(), "1/s");
    }
    Ok(())
}

/// Notes answers that are wrong or missing.
pub(super) fn check(name: &str, what: &str, asked: &Asked, results: &mut Results) {
    if asked.wrong + asked.missed > 0 {
        let Asked {
            queries,
            wrong,
            missed,
            ..
        } = asked;
        results.trouble(format!(
            "{name}: {what}: of {queries} answers {wrong} wrong, {missed} missing"
        ));
    }
}
