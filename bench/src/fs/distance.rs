//! A long way between a client and a server: a relay that delivers every octet later, in both directions, and counts.
//!
//! The beginning of a connection takes its round trip too: a client's octets reach the server one and a half round
//! trips after the connect, as behind a handshake of TCP, although the kernel answers the connect itself at once. The
//! relay has no limit of bandwidth and a window far above the bandwidth of loopback.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Octets under way in a direction, above which the relay reads no more: at 25 ms a way, 5 GB/s.
const UNDER_WAY_MAX: usize = 128 * 1024 * 1024;

/// Octets read at once.
const READ_OCTETS: usize = 256 * 1024;

/// Octets and connections since the start of the relay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Octets from clients to the server.
    pub(super) up: u64,
    /// Octets from the server to clients.
    pub(super) down: u64,
    pub(super) connections: u64,
}

impl Traffic {
    /// The traffic after an earlier count.
    pub(super) const fn since(self, before: Self) -> Self {
        Self {
            up: self.up.saturating_sub(before.up),
            down: self.down.saturating_sub(before.down),
            connections: self.connections.saturating_sub(before.connections),
        }
    }
}

/// A relay with threads of its own; open connections outlive the value until either side closes.
#[derive(Debug)]
pub(super) struct Distance {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    one_way: Duration,
    stop: AtomicBool,
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicU64,
}

impl Distance {
    /// Begins to relay connections to `target`, with a round trip of `round_trip`.
    pub(super) fn to(target: SocketAddr, round_trip: Duration) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            one_way: round_trip / 2,
            stop: AtomicBool::new(false),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("distance".to_owned())
            .spawn(move || accept(&listener, &own))?;
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// The near end: the address for clients.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts so far.
    pub(super) fn traffic(&self) -> Traffic {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Traffic {
            up: count(&self.shared.up),
            down: count(&self.shared.down),
            connections: count(&self.shared.connections),
        }
    }
}

impl Drop for Distance {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // The connection wakes the accepting thread.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        let Ok(client) = client else { continue };
        let (shared, begun) = (Arc::clone(shared), Instant::now());
        shared.connections.fetch_add(1, Ordering::Relaxed);
        // A connection without a thread is closed: the client sees the failure.
        let _ = std::thread::Builder::new().spawn(move || connect(client, &shared, begun));
    }
}

/// Relays a connection: the client's octets from now on, the server's from the end of the handshake.
fn connect(client: TcpStream, shared: &Arc<Shared>, begun: Instant) {
    let up = Arc::new(Way::new(shared.one_way));
    let relayed = (|| {
        client.set_nodelay(true)?;
        let (from, way, counts) = (client.try_clone()?, Arc::clone(&up), Arc::clone(shared));
        // At no distance the octets need no queue, so that each direction has one thread.
        let is_near = shared.one_way.is_zero();
        if !is_near {
            std::thread::Builder::new().spawn(move || way.fill(from, &counts.up))?;
        }
        sleep_until(begun + 3 * shared.one_way);
        let server = TcpStream::connect(shared.target)?;
        server.set_nodelay(true)?;
        let (from, to) = (server.try_clone()?, client.try_clone()?);
        let back = Arc::clone(shared);
        std::thread::Builder::new().spawn(move || relay(from, to, &back, &back.down))?;
        if is_near {
            pump(client.try_clone()?, server, &shared.up);
        } else {
            up.empty(server);
        }
        io::Result::Ok(())
    })();
    if relayed.is_err() {
        up.close();
        let _ = client.shutdown(Shutdown::Both);
    }
}

/// Relays a direction until its end.
fn relay(from: TcpStream, to: TcpStream, shared: &Shared, counter: &AtomicU64) {
    if shared.one_way.is_zero() {
        pump(from, to, counter);
        return;
    }
    let way = Way::new(shared.one_way);
    std::thread::scope(|scope| {
        scope.spawn(|| way.fill(from, counter));
        way.empty(to);
    });
}

/// Copies octets at once.
fn pump(mut from: TcpStream, mut to: TcpStream, counter: &AtomicU64) {
    let mut buffer = vec![0; READ_OCTETS];
    while let Some(octets) = read(&mut from, &mut buffer, counter) {
        if to.write_all(octets).is_err() {
            let _ = from.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// The next octets, or nothing at the end of the stream.
fn read<'a>(from: &mut TcpStream, buffer: &'a mut [u8], counter: &AtomicU64) -> Option<&'a [u8]> {
    let octets = from.read(buffer).ok().filter(|octets| *octets > 0)?;
    counter.fetch_add(octets as u64, Ordering::Relaxed);
    buffer.get(..octets)
}

fn sleep_until(at: Instant) {
    let wait = at.saturating_duration_since(Instant::now());
    if !wait.is_zero() {
        std::thread::sleep(wait);
    }
}

/// A direction with its octets under way.
struct Way {
    one_way: Duration,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    parcels: VecDeque<(Instant, Vec<u8>)>,
    octets: usize,
    /// When the end of the stream arrives.
    end: Option<Instant>,
    /// The receiving side is gone.
    is_closed: bool,
}

/// What reaches the end of the way next.
enum Arrival {
    Octets(Instant, Vec<u8>),
    End(Instant),
}

impl Way {
    fn new(one_way: Duration) -> Self {
        Self {
            one_way,
            queue: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts octets on the way until the stream ends.
    fn fill(&self, mut from: TcpStream, counter: &AtomicU64) {
        let mut buffer = vec![0; READ_OCTETS];
        while let Some(octets) = read(&mut from, &mut buffer, counter) {
            let due = Instant::now() + self.one_way;
            let full = |queue: &mut Queue| queue.octets > UNDER_WAY_MAX && !queue.is_closed;
            let queue = self.changed.wait_while(self.queue(), full);
            let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
            if queue.is_closed {
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
            queue.octets += octets.len();
            queue.parcels.push_back((due, octets.to_vec()));
            drop(queue);
            self.changed.notify_all();
        }
        self.queue().end = Some(Instant::now() + self.one_way);
        self.changed.notify_all();
    }

    /// Delivers octets in time until the end of the stream.
    fn empty(&self, mut to: TcpStream) {
        loop {
            match self.next() {
                Arrival::Octets(due, octets) => {
                    sleep_until(due);
                    if to.write_all(&octets).is_err() {
                        self.close();
                        return;
                    }
                }
                Arrival::End(due) => {
                    sleep_until(due);
                    let _ = to.shutdown(Shutdown::Write);
                    return;
                }
            }
        }
    }

    fn next(&self) -> Arrival {
        let idle = |queue: &mut Queue| queue.parcels.is_empty() && queue.end.is_none();
        let queue = self.changed.wait_while(self.queue(), idle);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        match queue.parcels.pop_front() {
            Some((due, octets)) => {
                queue.octets -= octets.len();
                drop(queue);
                self.changed.notify_all();
                Arrival::Octets(due, octets)
            }
            None => Arrival::End(queue.end.unwrap_or_else(Instant::now)),
        }
    }

    fn close(&self) {
        self.queue().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
