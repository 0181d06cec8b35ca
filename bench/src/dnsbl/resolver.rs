//! A name server with the lists of Figure 5: each answers after the time of a list over the Internet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::delays;
use super::questions::{Maps, VALUE};
use super::random::Random;
use super::wire;

/// The life of every answer, as in the paper.
const LIFE_SECONDS: u32 = 86_400;

/// Longest sleep: the thread looks for its end.
const TICK: Duration = Duration::from_millis(20);

/// The domain of the lists.
const DOMAIN: &str = "bl.test";

/// The zone of a list.
pub(super) fn zone(list: usize) -> String {
    format!("list{list}.{DOMAIN}")
}

/// An answer that waits for its time.
type Waiting = Reverse<(Instant, u64, Vec<u8>, SocketAddr)>;

/// A running name server, which ends when dropped.
#[derive(Debug)]
pub(super) struct Resolver {
    address: SocketAddr,
    queries: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Resolver {
    /// Serves the lists, each with all of these addresses, at a free port.
    pub(super) fn start(maps: Arc<Maps>, seed: u64) -> io::Result<Self> {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), maps, seed)
    }

    /// As [`start`](Self::start), at an address.
    pub(super) fn start_at(at: SocketAddr, maps: Arc<Maps>, seed: u64) -> io::Result<Self> {
        let socket = UdpSocket::bind(at)?;
        let address = socket.local_addr()?;
        let queries = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let server = Serving {
            socket,
            maps,
            random: Random::new(seed),
            waiting: BinaryHeap::new(),
            queries: Arc::clone(&queries),
            number: 0,
        };
        let until = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("resolver".to_owned());
        let thread = thread.spawn(move || server.run(&until))?;
        Ok(Self {
            address,
            queries,
            is_over,
            thread: Some(thread),
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Queries for names of lists so far.
    pub(super) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failed socket has shown in the figures.
            let _ = thread.join();
        }
    }
}

struct Serving {
    socket: UdpSocket,
    maps: Arc<Maps>,
    random: Random,
    waiting: BinaryHeap<Waiting>,
    queries: Arc<AtomicU64>,
    number: u64,
}

impl Serving {
    fn run(mut self, is_over: &AtomicBool) -> io::Result<()> {
        let mut query = [0; 1_500];
        while !is_over.load(Ordering::Relaxed) {
            let now = Instant::now();
            while let Some(Reverse((due, ..))) = self.waiting.peek()
                && *due <= now
            {
                if let Some(Reverse((_, _, answer, client))) = self.waiting.pop() {
                    // A client that has gone away needs no answer.
                    let _ = self.socket.send_to(&answer, client);
                }
            }
            let next = self.waiting.peek().map(|Reverse((due, ..))| *due - now);
            let pause = next.unwrap_or(TICK).clamp(Duration::from_micros(100), TICK);
            self.socket.set_read_timeout(Some(pause))?;
            match self.socket.recv_from(&mut query) {
                Ok((length, client)) => self.take(&query[..length], client),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionRefused => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Answers a query at its time; names outside the lists do not exist, and the answer comes at once.
    fn take(&mut self, query: &[u8], client: SocketAddr) {
        let Some((name, kind)) = wire::question(query) else {
            return;
        };
        let list = list_of(&name);
        let delay = match list {
            Some((list, _)) => {
                self.queries.fetch_add(1, Ordering::Relaxed);
                delays::delay(list, &mut self.random)
            }
            None => Duration::ZERO,
        };
        let data = list.and_then(|(_, labels)| self.data(labels, kind));
        let Some(answer) = wire::answer(query, data.as_deref(), LIFE_SECONDS) else {
            return;
        };
        self.number += 1;
        let due = Instant::now() + delay;
        self.waiting
            .push(Reverse((due, self.number, answer, client)));
    }

    /// The record's data for the labels before a zone.
    fn data(&self, labels: &str, kind: u16) -> Option<Vec<u8>> {
        let numbers: Option<Vec<u8>> = labels.split('.').map(|label| label.parse().ok()).collect();
        let [first, z, y, x] = numbers?[..] else {
            return None;
        };
        match (kind, first) {
            (1, w) => {
                let client = Ipv4Addr::new(x, y, z, w);
                let map = self.maps.map(client)?;
                (map & wire::bit(client) != 0).then(|| VALUE.octets().into())
            }
            (28, half @ 0..=1) => {
                let map = self.maps.map(Ipv4Addr::new(x, y, z, half << 7))?;
                Some(map.to_be_bytes().into())
            }
            _ => None,
        }
    }
}

/// The number of a list and the labels before its zone, for a name of a list.
fn list_of(name: &str) -> Option<(usize, &str)> {
    (0..delays::MEDIANS_MS.len()).find_map(|list| {
        let labels = name.strip_suffix(&zone(list))?.strip_suffix('.')?;
        Some((list, labels))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dnsbl::ask;
    use crate::dnsbl::questions::Question;
    use crate::dnsbl::wire::{Kind, Said};

    #[test]
    fn lists_answer_for_addresses_and_maps_and_count_their_queries() {
        let client = Ipv4Addr::new(20, 1, 2, 200);
        let maps = Arc::new(Maps::of(&[client]));
        let resolver = Resolver::start(maps, 1).unwrap();
        let ask = |name: String, kind| {
            let query = wire::query(&name, kind, true);
            let question = Question {
                query,
                expected: None,
            };
            ask::once(resolver.address(), &question, Duration::from_secs(60))
        };
        let zone = zone(5);
        let name = |client| wire::name_of_address(client, &zone);
        assert_eq!(ask(name(client), Kind::A), Some(Said::Address(VALUE)));
        let other = Ipv4Addr::new(20, 1, 2, 201);
        assert_eq!(ask(name(other), Kind::A), Some(Said::NoName));
        let map = wire::bit(client);
        // Resolvers write names in letters of both cases.
        let name = wire::name_of_map(client, &zone.to_uppercase());
        assert_eq!(ask(name, Kind::Aaaa), Some(Said::Map(map)));
        assert_eq!(resolver.queries(), 3);
        assert_eq!(ask("bench.test".to_owned(), Kind::A), Some(Said::NoName));
        assert_eq!(resolver.queries(), 3);
    }
}
