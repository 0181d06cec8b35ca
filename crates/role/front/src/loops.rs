//! The loops, and messages between loops: connections of clients, orders, readiness, signs of life.
//!
//! A loop shares no table with another loop. On the way of a connection several loops share the queue of the client's loop and the
//! count of all open connections.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use mio::net::TcpStream;
use mio::{Poll, Token, Waker};
use tokio::sync::watch;
use vere_process::entry;
use vere_settings::{Front, Settings};
use vere_telemetry::metrics::Health;

/// The token of the wakers.
pub(crate) const WAKE: Token = Token(usize::MAX);
/// The most loops of any machine, unless the settings say a number.
const LOOPS_MAX: usize = 16;
/// Connections that may wait for a loop: as many as may wait for the process in the kernel. A longer queue means that the loop is
/// stuck or overloaded.
pub(crate) const ARRIVALS_MAX: usize = 1_024;

/// A connection that was accepted, and the client's address.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    /// The client's address.
    pub(crate) address: SocketAddr,
    /// Our address, where a PROXY header has named one.
    pub(crate) local: Option<SocketAddr>,
}

/// All loops. The first loop accepts the connections of every loop.
#[derive(Debug)]
pub(crate) struct Loops {
    homes: Vec<Home>,
    /// A bit for each loop that had broker, gateway, signer and a worker once.
    complete: AtomicU32,
    /// A bit for each loop that was alive since the supervisor was told the last time.
    alive: AtomicU32,
    /// Open connections of all loops.
    open: AtomicU32,
    /// The loop that was asked last to close a connection.
    evicted: AtomicUsize,
    health: watch::Sender<Health>,
}

/// What other threads reach of a loop.
#[derive(Debug)]
struct Home {
    waker: Arc<Waker>,
    arrivals: SyncSender<Arrival>,
    stop: AtomicBool,
    /// Other settings are in force.
    settings: Mutex<Option<Arc<Settings>>>,
    /// Descriptors are short: a connection has to be closed.
    evict: AtomicBool,
}

/// What a loop waits with.
#[derive(Debug)]
pub(crate) struct Ear {
    pub(crate) poll: Poll,
    pub(crate) arrivals: Receiver<Arrival>,
}

/// The number of loops: that of the settings, or half of the cores, so that the other half has workers, TLS and the other processes.
pub(crate) fn number(front: &Front) -> NonZeroU32 {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
    let half = || u32::try_from(cores().min(LOOPS_MAX)).unwrap_or(1);
    let loops = front.loops.unwrap_or_else(|| half().min(front.workers));
    NonZeroU32::new(loops).unwrap_or(NonZeroU32::MIN)
}

impl Loops {
    /// Makes so many loops, for each of which `arrivals_max` connections may wait, and what each waits with.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub(crate) fn new(
        number: NonZeroU32,
        arrivals_max: usize,
        health: watch::Sender<Health>,
    ) -> std::io::Result<(Self, Vec<Ear>)> {
        let (mut homes, mut ears) = (Vec::new(), Vec::new());
        for _ in 0..number.get() {
            let poll = Poll::new()?;
            let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
            let (sender, arrivals) = sync_channel(arrivals_max);
            homes.push(Home {
                waker,
                arrivals: sender,
                stop: AtomicBool::new(false),
                settings: Mutex::default(),
                evict: AtomicBool::new(false),
            });
            ears.push(Ear { poll, arrivals });
        }
        let loops = Self {
            homes,
            complete: AtomicU32::new(0),
            alive: AtomicU32::new(0),
            open: AtomicU32::new(0),
            evicted: AtomicUsize::new(0),
            health,
        };
        Ok((loops, ears))
    }

    /// The wakers, in the order of the loops.
    pub(crate) fn wakers(&self) -> Vec<Arc<Waker>> {
        let wakers = self.homes.iter().map(|home| Arc::clone(&home.waker));
        wakers.collect()
    }

    /// Number of loops.
    pub(crate) const fn len(&self) -> usize {
        self.homes.len()
    }

    /// The bits of all loops.
    fn all(&self) -> u32 {
        self.homes.iter().fold(0, |bits, _| (bits << 1) | 1)
    }

    /// Marks a loop in a set of bits, and returns whether the set is whole now.
    fn mark(&self, bits: &AtomicU32, number: usize) -> bool {
        let bit = 1 << number;
        bits.fetch_or(bit, Ordering::AcqRel) | bit == self.all()
    }

    /// A loop has all processes, for the first time. The last loop makes the front ready, and the first loop begins to accept.
    pub(crate) fn complete(&self, number: usize) {
        if self.mark(&self.complete, number) {
            self.health.send_replace(Health::Ready);
            entry::notify_ready();
            self.wake(0);
        }
    }

    /// Whether every loop had all processes once.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire) == self.all()
    }

    /// A loop is alive. The supervisor hears of the front once every loop has called: living loops must not hide a stuck loop.
    pub(crate) fn beat(&self, number: usize) {
        if self.mark(&self.alive, number) {
            self.alive.store(0, Ordering::Release);
            entry::notify_watchdog();
        }
    }

    /// Orders all loops to end.
    pub(crate) fn stop(&self) {
        for home in &self.homes {
            home.stop.store(true, Ordering::Release);
        }
        self.wake_all();
    }

    /// Whether a loop has to end.
    pub(crate) fn is_stopping(&self, number: usize) -> bool {
        let stop = self.homes.get(number).map(|home| &home.stop);
        stop.is_none_or(|stop| stop.load(Ordering::Acquire))
    }

    /// Gives all loops other settings.
    pub(crate) fn reload(&self, settings: &Arc<Settings>) {
        for home in &self.homes {
            let place = home.settings.lock();
            *place.unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(settings));
        }
        self.wake_all();
    }

    /// Other settings for a loop, once.
    pub(crate) fn settings(&self, number: usize) -> Option<Arc<Settings>> {
        let place = self.homes.get(number)?.settings.lock();
        place.unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Gives a loop a connection; the caller wakes the loop.
    ///
    /// # Errors
    /// The connection, when too many wait for the loop.
    pub(crate) fn give(&self, number: usize, arrival: Arrival) -> Result<(), Arrival> {
        let Some(home) = self.homes.get(number) else {
            return Err(arrival);
        };
        home.arrivals
            .try_send(arrival)
            .map_err(|error| match error {
                TrySendError::Full(arrival) | TrySendError::Disconnected(arrival) => arrival,
            })
    }

    /// Wakes a loop.
    pub(crate) fn wake(&self, number: usize) {
        if let Some(home) = self.homes.get(number) {
            // A loop looks by itself every second.
            let _ = home.waker.wake();
        }
    }

    fn wake_all(&self) {
        for number in 0..self.len() {
            self.wake(number);
        }
    }

    /// Asks another loop, each in its turn, to close a connection. A loop that was asked asks no further loop.
    pub(crate) fn evict_elsewhere(&self, number: usize) {
        let others = self.len().saturating_sub(1).max(1);
        let turn = self.evicted.fetch_add(1, Ordering::Relaxed) % others;
        let asked = number.saturating_add(turn).saturating_add(1) % self.len().max(1);
        if asked != number
            && let Some(home) = self.homes.get(asked)
        {
            home.evict.store(true, Ordering::Release);
            self.wake(asked);
        }
    }

    /// Whether a loop was asked to close a connection, once.
    pub(crate) fn has_to_evict(&self, number: usize) -> bool {
        let asked = self.homes.get(number).map(|home| &home.evict);
        asked.is_some_and(|evict| {
            evict.load(Ordering::Relaxed) && evict.swap(false, Ordering::Acquire)
        })
    }
}

/// A loop's part in the number of open connections, of which all loops together may have `limits.connections_max`.
///
/// The number is exact and not divided: a client is turned away when all places are taken, and never while places are free.
#[derive(Debug)]
pub(crate) struct Share {
    loops: Arc<Loops>,
    /// Places that the loop has taken.
    taken: u32,
}

impl Share {
    pub(crate) const fn new(loops: Arc<Loops>) -> Self {
        Self { loops, taken: 0 }
    }

    /// Reserves a place for a connection that arrives. Returns the connections that the loop may have, where `open` are open and all
    /// loops may have `connections_max`.
    pub(crate) fn with_another(&mut self, open: u32, connections_max: u32) -> u32 {
        if self.loops.len() == 1 {
            return connections_max;
        }
        self.settle(open);
        let next = |all: u32| (all < connections_max).then(|| all.saturating_add(1));
        let all = &self.loops.open;
        if all
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .is_ok()
        {
            self.taken = self.taken.saturating_add(1);
        }
        self.taken
    }

    /// Gives back the places of connections that have ended.
    pub(crate) fn settle(&mut self, open: u32) {
        let ended = self.taken.saturating_sub(open);
        if ended > 0 && self.loops.len() > 1 {
            self.loops.open.fetch_sub(ended, Ordering::AcqRel);
            self.taken = open;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(number: u32) -> (Arc<Loops>, Vec<Ear>) {
        let health = watch::Sender::new(Health::Starting);
        let (loops, ears) = Loops::new(NonZeroU32::new(number).unwrap(), 3, health).unwrap();
        (Arc::new(loops), ears)
    }

    #[test]
    fn all_places_may_be_those_of_one_loop_and_no_place_is_taken_twice() {
        let (loops, _ears) = loops(2);
        let (mut one, mut other) = (Share::new(Arc::clone(&loops)), Share::new(loops));
        for open in 0..5 {
            assert_eq!(one.with_another(open, 5), open + 1);
        }
        assert_eq!(one.with_another(5, 5), 5, "no sixth place");
        assert_eq!(other.with_another(0, 5), 0, "nor one in the other loop");
        // Two connections have ended, and the other loop may have their places.
        one.settle(3);
        assert_eq!(other.with_another(0, 5), 1);
        assert_eq!(other.with_another(1, 5), 2);
        assert_eq!(one.with_another(3, 5), 3);
        // A client that was turned away for another reason keeps no place.
        other.settle(1);
        assert_eq!(one.with_another(3, 5), 4);
        // A reload allows fewer.
        assert_eq!(one.with_another(4, 2), 4);
        assert_eq!(other.with_another(0, 2), 0);
    }

    #[test]
    fn loops_that_race_take_all_places_and_no_more() {
        const PLACES: u32 = 1_000;
        let (loops, _ears) = loops(4);
        let taken: u32 = std::thread::scope(|scope| {
            let take = |_| {
                let mut share = Share::new(Arc::clone(&loops));
                scope.spawn(move || {
                    let mut open = 0;
                    while share.with_another(open, PLACES) > open {
                        open += 1;
                    }
                    open
                })
            };
            let threads: Vec<_> = (0..4).map(take).collect();
            let taken = threads.into_iter().map(|thread| thread.join().unwrap());
            taken.sum()
        });
        assert_eq!(taken, PLACES);
    }

    #[test]
    fn the_front_is_complete_with_its_last_loop() {
        let (loops, _ears) = loops(3);
        for number in [2, 0, 0, 2] {
            loops.complete(number);
            assert!(!loops.is_complete());
        }
        loops.complete(1);
        assert!(loops.is_complete());
        assert_eq!(*loops.health.borrow(), Health::Ready);
    }

    #[test]
    fn the_front_is_alive_while_each_loop_is() {
        let (loops, _ears) = loops(2);
        let told = || loops.alive.load(Ordering::Relaxed) == 0;
        for _ in 0..3 {
            loops.beat(0);
            assert!(!told(), "a stuck loop is hidden");
        }
        loops.beat(1);
        assert!(told());
        loops.beat(1);
        assert!(!told());
    }

    #[test]
    fn orders_reach_every_loop_once() {
        let (loops, _ears) = loops(2);
        let text = "version = 1\nhostname = \"mx.example.org\"\n";
        let settings = Arc::new(Settings::parse(text, "vere.toml").unwrap());
        loops.reload(&settings);
        for number in 0..2 {
            assert!(loops.settings(number).is_some());
            assert!(loops.settings(number).is_none());
            assert!(!loops.is_stopping(number));
        }
        loops.stop();
        assert!(loops.is_stopping(0) && loops.is_stopping(1));
        let asked = |number| loops.has_to_evict(number);
        loops.evict_elsewhere(0);
        loops.evict_elsewhere(0);
        assert!(!asked(0) && asked(1) && !asked(1));
    }

    #[test]
    fn a_loop_has_a_bounded_queue() {
        let (loops, ears) = loops(2);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap();
        let arrival = || {
            let client = std::net::TcpStream::connect(address).unwrap();
            drop(port.accept().unwrap());
            Arrival {
                stream: TcpStream::from_std(client),
                address,
                local: None,
            }
        };
        let mut given = 0;
        let refused = loop {
            match loops.give(1, arrival()) {
                Ok(()) => given += 1,
                Err(arrival) => break arrival,
            }
        };
        assert_eq!(given, 3);
        assert_eq!(refused.address, address);
        ears[1].arrivals.try_recv().unwrap();
        loops.give(1, refused).unwrap();
        assert!(loops.give(2, arrival()).is_err(), "no such loop");
        assert!(ears[0].arrivals.try_recv().is_err());
    }

    #[test]
    fn a_number_in_the_settings_counts() {
        let of = |rest: &str| {
            let text = format!("version = 1\nhostname = \"mx.example.org\"\n[front]\n{rest}");
            let settings = Settings::parse(&text, "vere.toml").unwrap();
            number(settings.front.as_ref().unwrap()).get()
        };
        assert_eq!(of("loops = 3\nworkers = 3\n"), 3);
        assert_eq!(of("workers = 1\n"), 1);
        assert!((1..=16).contains(&of("workers = 256\n")));
    }
}
