//! A flood of queries to the server of block lists: random names below its zone, from the addresses of the crowd.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::system::ZONE;
use crate::dns_wire::{self as wire, Kind};
use crate::process::guard;
use crate::random::Random;

/// Queries in a millisecond: 20,000 a second.
const BURST: usize = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Every second name is an address, the others are labels of so many letters: neither is asked for twice.
const LETTERS: usize = 24;

/// Largest answer.
const ANSWER_MAX: usize = 1_500;

/// Queries and answers of a flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flooded {
    pub(super) queries: u64,
    pub(super) answers: u64,
    pub(super) time: Duration,
}

impl Flooded {
    /// A count by the time.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.time.as_secs_f64().max(1e-3)
    }
}

/// A flood, which ends when dropped.
#[derive(Debug)]
pub(super) struct Flood {
    shared: Arc<Shared>,
    began: Instant,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    queries: AtomicU64,
    answers: AtomicU64,
}

impl Flood {
    /// Begins a flood of a server.
    pub(super) fn begin(server: SocketAddr, sources: usize) -> io::Result<Self> {
        let sockets = (0..sources).map(|number| {
            let network = u8::try_from(number % 254 + 1).unwrap_or(u8::MAX);
            let socket = UdpSocket::bind((Ipv4Addr::new(127, network, 1, 1), 0))?;
            socket.connect(server)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("flood".to_owned());
        Ok(Self {
            shared,
            began: Instant::now(),
            thread: Some(thread.spawn(move || own.run(&sockets))?),
        })
    }

    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }

    /// Ends the flood.
    pub(super) fn end(mut self) -> Flooded {
        let time = self.began.elapsed();
        self.join();
        Flooded {
            queries: self.shared.queries.load(Ordering::SeqCst),
            answers: self.shared.answers.load(Ordering::SeqCst),
            time,
        }
    }

    fn join(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.join();
    }
}

impl Shared {
    fn run(&self, sockets: &[UdpSocket]) {
        let mut random = Random::new(1);
        let mut answer = [0; ANSWER_MAX];
        let mut turns = sockets.iter().cycle();
        while !self.stop.load(Ordering::SeqCst) && !guard::is_stopped() {
            for socket in turns.by_ref().take(BURST) {
                // A full socket of the server loses queries, as the network does.
                if socket.send(&query(&mut random)).is_ok() {
                    self.queries.fetch_add(1, Ordering::Relaxed);
                }
                while socket.recv(&mut answer).is_ok() {
                    self.answers.fetch_add(1, Ordering::Relaxed);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn query(random: &mut Random) -> Vec<u8> {
    let name = match random.below(2) {
        0 => {
            let address = u32::try_from(random.below(1 << 32)).unwrap_or_default();
            wire::name_of_address(address.into(), ZONE)
        }
        _ => {
            let letter = |_| char::from(b'a' + random.below(26) as u8);
            let label: String = (0..LETTERS).map(letter).collect();
            format!("{label}.{ZONE}")
        }
    };
    let mut query = wire::query(&name, Kind::A, true);
    query[0] = random.below(256) as u8;
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_names_of_its_own_and_counts_answers() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let patience = Some(Duration::from_secs(10));
        server.set_read_timeout(patience).unwrap();
        let flood = Flood::begin(server.local_addr().unwrap(), 100).unwrap();
        let mut names = std::collections::HashSet::new();
        for _ in 0..200 {
            let mut query = [0; 512];
            let (length, client) = server.recv_from(&mut query).unwrap();
            let (name, kind) = wire::question(&query[..length]).unwrap();
            assert!(name.ends_with(ZONE) && kind == 1, "{name}");
            names.insert(name);
            server.send_to(&query[..length], client).unwrap();
        }
        assert_eq!(names.len(), 200);
        while flood.shared.answers.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(PAUSE);
        }
        let flooded = flood.end();
        assert!(flooded.queries >= 200 && flooded.answers > 0, "{flooded:?}");
        assert!(flooded.per_second(flooded.queries) > 0.0);
    }
}
