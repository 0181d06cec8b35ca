//! A TLS proxy in threads: the owner of a connection gives the connection away and has the plaintext at a socket pair. Several
//! owners may share the threads.
//!
//! A few threads carry out handshakes and carry octets, each with a loop over connections; a handshake delays encrypted
//! connections only. The owner hears when a handshake is done; the end of a connection, also by a handshake that fails, is the end
//! of the plaintext.
//!
//! Where the kernel has TLS, a thread carries out the handshake alone, and the owner gets the client's socket back ([`Carrier`]).

mod counts;
mod records;
mod session;
mod thread;

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use mio::{Poll, Waker};

use super::server::config;
use super::{HANDSHAKE_TIMEOUT, KernelTls, RemoteCertificates, TlsError, TlsInfo};
use counts::Counts;
use thread::{Thread, WAKE};

pub use counts::Handshakes;

/// How many threads there are, and how long a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyOptions {
    /// Threads, at least one.
    pub threads: usize,
    /// The longest time of a handshake.
    pub handshake_timeout: Duration,
    /// How long a client may read the last octets of an owner after the owner's close.
    pub linger: Duration,
    /// The ciphers that the kernel carries out behind the handshake; by default none.
    pub kernel: KernelTls,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            threads: 2,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            linger: Duration::from_secs(10),
            kernel: KernelTls::default(),
        }
    }
}

/// The name of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobName {
    /// The owner of the connection, where several share the threads.
    pub owner: usize,
    /// The owner's number of the connection.
    pub number: u64,
}

/// A connection to be encrypted.
#[derive(Debug)]
pub struct Job {
    /// Its name.
    pub name: JobName,
    /// The client, whose next octet begins a handshake.
    pub client: TcpStream,
    /// The proxy's end of the socket pair, not blocking.
    pub plain: UnixStream,
}

/// The carrier of a connection behind the handshake.
#[derive(Debug)]
pub enum Carrier {
    /// The thread: the plaintext is at the owner's end of the socket pair.
    Thread,
    /// The kernel: the plaintext is at the client's socket, which is not blocking ([`kernel`](super::kernel) has what is special
    /// about it).
    Kernel {
        /// The client.
        client: TcpStream,
        /// The proxy's end of the socket pair. As long as the owner has it, the pair has no end.
        plain: UnixStream,
    },
}

/// Hears of finished handshakes, from any thread.
pub type Secured = Arc<dyn Fn(JobName, TlsInfo, Carrier) + Send + Sync>;

/// The threads.
pub struct TlsProxy {
    threads: Vec<Order>,
    next: AtomicUsize,
    open: Arc<AtomicUsize>,
    counts: Arc<Counts>,
}

struct Order {
    jobs: Sender<Job>,
    waker: Waker,
}

impl fmt::Debug for TlsProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsProxy")
            .field("threads", &self.threads.len())
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

impl TlsProxy {
    /// Starts the threads; the end of the proxy ends the threads.
    ///
    /// # Errors
    /// When the system gives no thread, or the TLS library refuses ([`TlsError`]).
    pub fn start(
        certificates: &RemoteCertificates,
        options: ProxyOptions,
        secured: &Secured,
    ) -> io::Result<Self> {
        let refused = |error: TlsError| io::Error::other(error);
        let mut config = config(certificates.certificates()).map_err(refused)?;
        config.enable_secret_extraction = options.kernel.is_there();
        let config = Arc::new(config);
        let open = Arc::new(AtomicUsize::new(0));
        let counts = Arc::<Counts>::default();
        let start = |number: usize| {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), WAKE)?;
            let (jobs, taken) = std::sync::mpsc::channel();
            let config = Arc::clone(&config);
            let shared = (Arc::clone(secured), Arc::clone(&open), Arc::clone(&counts));
            let thread = Thread::new(poll, taken, config, options, shared);
            std::thread::Builder::new()
                .name(format!("tls-{number}"))
                .spawn(move || thread.run())?;
            Ok(Order { jobs, waker })
        };
        Ok(Self {
            threads: (0..options.threads.max(1))
                .map(start)
                .collect::<io::Result<_>>()?,
            next: AtomicUsize::new(0),
            open,
            counts,
        })
    }

    /// Gives the next thread a connection. A connection without a thread is closed, and so is the plaintext.
    pub fn take(&self, mut job: Job) {
        for _ in 0..self.threads.len() {
            let place = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len().max(1);
            let Some(thread) = self.threads.get(place) else {
                continue;
            };
            match thread.jobs.send(job) {
                Ok(()) => {
                    // The loop looks again by itself at the next event.
                    let _ = thread.waker.wake();
                    return;
                }
                Err(refused) => {
                    tracing::error!(place, "a thread of TLS has ended");
                    job = refused.0;
                }
            }
        }
    }

    /// Returns the counts of handshakes since the start.
    #[must_use]
    pub fn handshakes(&self) -> Handshakes {
        self.counts.read()
    }

    /// Number of connections of the threads.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        for Order { jobs, waker } in self.threads.drain(..) {
            drop(jobs);
            let _ = waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
