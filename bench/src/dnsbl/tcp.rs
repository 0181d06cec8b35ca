//! Queries over TCP: many on a connection, and a connection for each.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::ask::{Asked, PATIENCE};
use super::cpu;
use super::list::Shape;
use super::plan::{DATA_SEED, Plan};
use super::questions::{self, Maps, Question};
use super::random::Random;
use super::results::Results;
use super::servers::{Limit, ListFile, Server, Site, System};
use crate::error::BenchError;

/// Connections at once.
const CONNECTIONS: usize = 4;

/// Queries in flight on a connection.
const WINDOW: usize = 32;

/// Different questions.
const QUESTIONS: usize = 20_000;

/// Measures our server; rbldnsd has no TCP.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let listed = Shape::Neighbours.addresses(plan.listed, DATA_SEED);
    let file = ListFile::of(&listed, site)?;
    let maps = Maps::of(&listed);
    let clients = questions::clients(&listed, QUESTIONS, &mut Random::new(DATA_SEED));
    let questions: Vec<Question> = clients.iter().map(|client| maps.address(*client)).collect();
    let probe = maps.address(listed[0]);
    let server = Server::started(
        System::Ours,
        site,
        &file.path,
        Limit::Off,
        &probe,
        &mut results.header,
    );
    let Some(server) = server else { return Ok(()) };
    let ways = [("TCP, 32 in flight", WINDOW), ("TCP, a connection each", 0)];
    for (what, window) in ways {
        for _ in 0..plan.rounds {
            one(plan, &server, what, window, &questions, results)?;
        }
    }
    Ok(())
}

fn one(
    plan: &Plan,
    server: &Server,
    what: &str,
    window: usize,
    questions: &[Question],
    results: &mut Results,
) -> Result<(), BenchError> {
    let name = server.system.name();
    let failed = || BenchError::of(format!("{name}: {what}"));
    let account = server.account();
    let before = account.total().map_err(failed())?;
    // A connection costs as much as many queries.
    let divisor = if window == 0 { 100 } else { 10 };
    let count = (plan.queries / divisor) as usize / CONNECTIONS;
    let began = Instant::now();
    let parts = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let own = questions.iter().cycle().skip(number * 97).take(count);
                let own: Vec<&Question> = own.collect();
                scope.spawn(move || match window {
                    0 => own
                        .chunks(1)
                        .map(|one| batches(server.address, one, 1))
                        .sum(),
                    _ => batches(server.address, &own, window),
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("panicked")))
            })
            .sum::<io::Result<u64>>()
    });
    let right = parts.map_err(failed())?;
    let seconds = began.elapsed().as_secs_f64();
    let cpu = account.total().map_err(failed())?.saturating_sub(before);
    let queries = (count * CONNECTIONS) as u64;
    let asked = Asked {
        queries,
        wrong: queries - right,
        seconds,
        ..Asked::default()
    };
    cpu::check(name, what, &asked, results);
    results
        .figures
        .add(name, format!("{what}: answers"), asked.per_second(), "1/s");
    let each = cpu.as_secs_f64() * 1e6 / right.max(1) as f64;
    results
        .figures
        .add(name, format!("{what}: CPU"), each, "us/query");
    Ok(())
}

/// Asks over a connection, a window at a time; returns the number of right answers.
fn batches(server: SocketAddr, questions: &[&Question], window: usize) -> io::Result<u64> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE.max(Duration::from_secs(5))))?;
    stream.set_nodelay(true)?;
    let mut right = 0;
    for batch in questions.chunks(window) {
        let mut queries: Vec<Vec<u8>> = batch.iter().map(|one| one.query.clone()).collect();
        let mut out = Vec::new();
        for (number, query) in queries.iter_mut().enumerate() {
            query[..2].copy_from_slice(&(number as u16).to_be_bytes());
            out.extend((query.len() as u16).to_be_bytes());
            out.extend_from_slice(query);
        }
        stream.write_all(&out)?;
        for _ in batch {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut answer)?;
            right += u64::from(is_right(&answer, batch, &queries));
        }
    }
    Ok(right)
}

/// Whether an answer, in whatever order, is right.
fn is_right(answer: &[u8], batch: &[&Question], queries: &[Vec<u8>]) -> bool {
    let Some(number) = super::wire::id(answer).map(usize::from) else {
        return false;
    };
    let (Some(question), Some(query)) = (batch.get(number), queries.get(number)) else {
        return false;
    };
    let said = super::wire::read(answer, query);
    said.is_some()
        && question
            .expected
            .is_none_or(|expected| said == Some(expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn answers_in_any_order_are_told_from_wrong_ones() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = port.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = port.accept().unwrap();
            let mut messages = Vec::new();
            for _ in 0..3 {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
                stream.read_exact(&mut query).unwrap();
                query[2] = 0x84;
                query[3] = 3;
                messages.push([&length[..], &query].concat());
            }
            messages.reverse();
            stream.write_all(&messages.concat()).unwrap();
        });
        let maps = Maps::of(&[Ipv4Addr::new(20, 0, 0, 5)]);
        let questions = [4, 5, 6].map(|host| maps.address(Ipv4Addr::new(20, 0, 0, host)));
        let questions: Vec<&Question> = questions.iter().collect();
        assert_eq!(batches(address, &questions, 3).unwrap(), 2);
        server.join().unwrap();
    }
}
