//! A TCP relay between client and server: slow, silent, or cut on demand.

#![allow(
    clippy::missing_panics_doc,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Octets handed on at a time.
const BLOCK: usize = 64 * 1024;
/// Blocks on the way.
const BLOCKS: usize = 1_024;

/// A relay in front of an address. All octets arrive after the delay, at any rate.
#[derive(Debug)]
pub struct Relay {
    /// The address for clients.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The delay in each direction, in microseconds.
    delay: AtomicU64,
    /// Whether octets vanish, in both directions, and no connection gets an answer.
    silent: AtomicBool,
    /// Whether new connections are closed at once.
    refuses: AtomicBool,
    /// Whether octets of the server vanish.
    deaf: AtomicBool,
    ended: AtomicBool,
    accepted: AtomicUsize,
    /// Octets of clients, before all connections are cut; no cut at the maximum.
    cut_after: AtomicU64,
    /// Whether octets beyond, of the same block, arrive as well.
    whole: AtomicBool,
    sockets: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// Starts a relay with a delay in each direction.
    #[must_use]
    pub fn to(target: SocketAddr, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::<Shared>::default();
        let micros = u64::try_from(delay.as_micros()).expect("a short delay");
        shared.delay.store(micros, Ordering::Relaxed);
        shared.cut_after.store(u64::MAX, Ordering::Relaxed);
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if own.ended.load(Ordering::Relaxed) {
                    return;
                }
                own.accepted.fetch_add(1, Ordering::Relaxed);
                // Without a listener at the target, the relay closes the connection of the client.
                if !own.refuses.load(Ordering::Relaxed)
                    && let Ok(server) = TcpStream::connect(target)
                {
                    own.join(&client, &server);
                }
            }
        });
        Self { address, shared }
    }

    /// Cuts all connections; new connections are possible.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Cuts all connections once clients have sent so many further octets; the octets before arrive, with the rest of
    /// their block if `whole`, and no answer.
    pub fn cut_after(&self, octets: u64, whole: bool) {
        self.shared.whole.store(whole, Ordering::Relaxed);
        self.shared.deaf.store(true, Ordering::Relaxed);
        self.shared.cut_after.store(octets, Ordering::Relaxed);
    }

    /// Lets octets pass, or vanish.
    pub fn silence(&self, silent: bool) {
        self.shared.silent.store(silent, Ordering::Relaxed);
    }

    /// Ends all connections, and closes new ones at once, as a host without the server does; or goes on.
    pub fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, Ordering::Relaxed);
        if refuses {
            self.shared.cut();
        }
    }

    /// Connections so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        self.shared.cut();
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn cut(&self) {
        self.deaf.store(false, Ordering::Relaxed);
        self.cut_after.store(u64::MAX, Ordering::Relaxed);
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        for socket in [client, server] {
            socket.set_nodelay(true).expect("an option");
            let clone = socket.try_clone().expect("a descriptor");
            let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            sockets.push(clone);
        }
        for (from, to, of_client) in [(client, server, true), (server, client, false)] {
            let from = from.try_clone().expect("a descriptor");
            let to = to.try_clone().expect("a descriptor");
            let (send, blocks) = sync_channel(BLOCKS);
            let shared = Arc::clone(self);
            thread::spawn(move || {
                let mut from = from;
                let mut buffer = vec![0; BLOCK];
                while let Ok(count) = from.read(&mut buffer)
                    && count > 0
                {
                    let delay = Duration::from_micros(shared.delay.load(Ordering::Relaxed));
                    let block = buffer.get(..count).unwrap_or_default().to_vec();
                    if send.send((Instant::now() + delay, block)).is_err() {
                        return;
                    }
                }
            });
            let shared = Arc::clone(self);
            thread::spawn(move || shared.hand_on(&blocks, to, of_client));
        }
    }

    fn hand_on(&self, blocks: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream, of_client: bool) {
        while let Ok((due, block)) = blocks.recv() {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let silent = self.silent.load(Ordering::Relaxed);
            if silent || !of_client && self.deaf.load(Ordering::Relaxed) {
                continue;
            }
            let octets = u64::try_from(block.len()).unwrap_or(u64::MAX);
            let left = self.cut_after.load(Ordering::Relaxed);
            let cuts = of_client && left != u64::MAX && left <= octets;
            let passes = match cuts && !self.whole.load(Ordering::Relaxed) {
                true => usize::try_from(left).unwrap_or(usize::MAX),
                false => block.len(),
            };
            if to
                .write_all(block.get(..passes).unwrap_or_default())
                .is_err()
            {
                break;
            }
            if cuts {
                // What arrived is carried out; the answer is lost.
                thread::sleep(Duration::from_millis(300));
                return self.cut();
            }
            if of_client && left != u64::MAX {
                self.cut_after
                    .store(left.saturating_sub(octets), Ordering::Relaxed);
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}
