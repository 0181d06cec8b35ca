//! A flood of queries with a forged source: how many octets the server sends to the victim.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::list::Shape;
use super::plan::{DATA_SEED, Plan};
use super::questions::{Maps, Question};
use super::random::Random;
use super::results::Results;
use super::servers::{Limit, ListFile, Server, Site, System};
use super::trace;
use crate::error::BenchError;
use crate::process::guard;

/// The figures with bars: the same query again and again, a separate name for each query, and nonexistent names,
/// with a SOA record in the answers, from the addresses of many victims.
pub(super) const SAME: &str = "flood, one name: octets out / in";
pub(super) const OTHERS: &str = "flood, many names: octets out / in";
pub(super) const VICTIMS: &str = "flood, many victims: octets out / in";

/// Victims in separate networks, each below the share of answers of a network.
const MANY: u8 = 200;

/// The address of a victim; a server cannot tell whether the victim sent a query.
const fn victim(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 9, number, 7)
}

/// Queries in a millisecond.
const BURST: usize = 20;

/// Time for the last answers.
const REST: Duration = Duration::from_millis(300);

/// Different names.
const NAMES: usize = 20_000;

/// Floods each server alone and fresh, with its limits as shipped.
pub(super) fn measure(
    plan: &Plan,
    site: &Site<'_>,
    results: &mut Results,
) -> Result<(), BenchError> {
    let listed = Shape::Neighbours.addresses(NAMES, DATA_SEED);
    let file = ListFile::of(&listed, site)?;
    let maps = Maps::of(&listed);
    let probe = maps.address(listed[0]);
    // Half of the queries are for maps, whose answers are the larger ones.
    let both = listed
        .iter()
        .flat_map(|client| [maps.address(*client), maps.neighbours(*client)]);
    let others: Vec<Question> = both.collect();
    let same = [maps.neighbours(listed[0])];
    let mut random = Random::new(DATA_SEED);
    let strangers = (0..NAMES).map(|_| maps.address(trace::address(&mut random)));
    let absent: Vec<Question> = strangers.collect();
    for system in System::ALL {
        for (figure, questions, victims) in [
            (SAME, &same[..], 1),
            (OTHERS, &others[..], 1),
            (VICTIMS, &absent[..], MANY),
        ] {
            let server = Server::started(
                system,
                site,
                &file.path,
                Limit::On,
                &probe,
                &mut results.header,
            );
            let Some(server) = server else { continue };
            let name = system.name();
            let octets = flood(server.address, questions, victims, plan.flood);
            let octets = octets.map_err(BenchError::of(format!("flood of {name}")))?;
            results.figures.add(name, figure, octets.ratio(), "ratio");
            if guard::is_stopped() {
                return Err(BenchError::Stopped);
            }
        }
    }
    Ok(())
}

/// Octets of UDP to the server and to the victim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Octets {
    queries: u64,
    answers: u64,
}

impl Octets {
    fn ratio(self) -> f64 {
        self.answers as f64 / self.queries.max(1) as f64
    }
}

fn flood(
    server: SocketAddr,
    questions: &[Question],
    victims: u8,
    time: Duration,
) -> io::Result<Octets> {
    let socket = |number| {
        let socket = UdpSocket::bind((victim(number), 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let victims = (0..victims).map(socket).collect::<io::Result<Vec<_>>>()?;
    let mut octets = Octets::default();
    let mut turns = questions.iter().cycle().zip(victims.iter().cycle());
    let began = Instant::now();
    while began.elapsed() < time && !guard::is_stopped() {
        for (question, victim) in turns.by_ref().take(BURST) {
            // A full socket of the server loses queries, which then are no octets in.
            if let Ok(sent) = victim.send(&question.query) {
                octets.queries += sent as u64;
            }
        }
        octets.answers += all_received(&victims)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    let until = Instant::now() + REST;
    while Instant::now() < until {
        octets.answers += all_received(&victims)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(octets)
}

fn all_received(victims: &[UdpSocket]) -> io::Result<u64> {
    victims.iter().map(received).sum()
}

/// The octets that wait at a socket.
fn received(socket: &UdpSocket) -> io::Result<u64> {
    let mut octets = 0;
    let mut answer = [0; 4_096];
    loop {
        match socket.recv(&mut answer) {
            Ok(length) => octets += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(octets),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(octets),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_counted_in_both_directions() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = server.local_addr().unwrap();
        server
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let thread = std::thread::spawn(move || {
            let mut query = [0; 512];
            let mut octets = Octets::default();
            while let Ok((length, client)) = server.recv_from(&mut query) {
                octets.queries += length as u64;
                octets.answers += server.send_to(&query[..2 * length], client).unwrap() as u64;
            }
            octets
        });
        let client = Ipv4Addr::new(20, 0, 0, 5);
        let questions = [Maps::of(&[client]).address(client)];
        let found = flood(address, &questions, 2, Duration::from_millis(3)).unwrap();
        let served = thread.join().unwrap();
        assert!(found.queries > 0 && found.queries == served.queries);
        // A server that comes late answers after the end.
        assert!((1..=served.answers).contains(&found.answers), "{found:?}");
        assert!((served.ratio() - 2.0).abs() < 1e-9);
    }
}
