//! `vere-bench sink`: accepts mail, and keeps, counts or loses the mail as configured.
//!
//! A single thread with one epoll set receives from any number of sessions at a few microseconds of CPU per message,
//! so that the measurement of a relay is not a measurement of its destination. For tests the sink can refuse, wait or
//! break off at any step of the dialogue ([`Fault`]).

mod args;
mod fault;
mod server;
mod store;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use mio::Waker;

pub use args::{SinkArgs, run};
pub use fault::{Action, Fault, InvalidFault};
pub use server::Sink;
pub use store::{IndexEntry, SaveMode, read_index};

pub use crate::wire::Stage;

use crate::ids::MessageId;
use crate::process::{self, CpuAccount};

/// The behaviour of a [`Sink`].
#[derive(Debug)]
pub struct SinkOptions {
    /// The address to listen at, unless `listener` is given; port 0 takes a free port.
    pub listen: SocketAddr,
    /// A socket in the state LISTEN.
    pub listener: Option<TcpListener>,
    /// The directory for messages, created when missing; without a directory no message is kept.
    pub save: Option<PathBuf>,
    /// How messages lie in `save`.
    pub mode: SaveMode,
    /// Remember the id and arrival time of every message, for [`SinkHandle::deliveries`].
    pub remember: bool,
    /// Misbehaviour, first match first.
    pub faults: Vec<Fault>,
    /// Named in the greeting.
    pub hostname: String,
    /// EHLO keywords, `SIZE` apart. Commands of a keyword left out still work.
    pub extensions: Vec<String>,
    /// The longest message taken, in octets.
    pub message_size_max: usize,
    /// Limit of concurrent sessions; further sessions get 421.
    pub sessions_max: usize,
}

impl Default for SinkOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            listener: None,
            save: None,
            mode: SaveMode::Folder,
            remember: false,
            faults: Vec::new(),
            hostname: "sink.invalid".to_owned(),
            extensions: [
                "PIPELINING",
                "8BITMIME",
                "SMTPUTF8",
                "CHUNKING",
                "BINARYMIME",
                "DSN",
            ]
            .iter()
            .chain(["ENHANCEDSTATUSCODES"].iter())
            .map(|keyword| (*keyword).to_owned())
            .collect(),
            message_size_max: 64 * 1024 * 1024,
            sessions_max: 20_000,
        }
    }
}

impl SinkOptions {
    /// A sink that remembers every message, and is else as usual.
    pub fn remembering() -> Self {
        Self {
            remember: true,
            ..Self::default()
        }
    }
}

/// Why a sink could not start or go on.
#[derive(Debug)]
pub enum SinkError {
    /// The address is taken or not ours.
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The folder for messages cannot be written.
    Save {
        /// The folder or file.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The event loop failed.
    Loop(io::Error),
}

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Save { path, source } => write!(f, "cannot write {}: {source}", path.display()),
            Self::Loop(source) => write!(f, "sink stopped: {source}"),
        }
    }
}

impl std::error::Error for SinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. } | Self::Save { source, .. } | Self::Loop(source) => {
                Some(source)
            }
        }
    }
}

/// Totals of a sink.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinkCounts {
    /// Messages answered 250, or taken and then left without an answer by [`Action::Lose`].
    pub messages: u64,
    /// Octets of the counted messages as on the wire.
    pub octets: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Answers spoiled by a [`Fault`].
    pub faults: u64,
}

/// An arrived message.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// The `X-Bench-Id` of the message.
    pub id: MessageId,
    /// Time when the last octet was read.
    pub at: Instant,
}

#[derive(Debug)]
struct Shared {
    messages: AtomicU64,
    octets: AtomicU64,
    connections: AtomicU64,
    faults: AtomicU64,
    stop: AtomicBool,
    deliveries: Mutex<Vec<Delivery>>,
    waker: Waker,
}

impl Shared {
    fn new(waker: Waker) -> Self {
        Self {
            messages: AtomicU64::new(0),
            octets: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            deliveries: Mutex::new(Vec::new()),
            waker,
        }
    }

    fn deliveries(&self) -> MutexGuard<'_, Vec<Delivery>> {
        // A list of plain values is whole at every moment.
        self.deliveries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches and stops a [`Sink`] from another thread.
#[derive(Debug, Clone)]
pub struct SinkHandle {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl SinkHandle {
    /// Where the sink listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Totals so far. A message is counted, and its delivery listed, before the reply.
    pub fn counts(&self) -> SinkCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Acquire);
        SinkCounts {
            messages: load(&self.shared.messages),
            octets: load(&self.shared.octets),
            connections: load(&self.shared.connections),
            faults: load(&self.shared.faults),
        }
    }

    /// Messages with an id that arrived since the last call, in order of arrival; with
    /// [`SinkOptions::remember`].
    pub fn take_deliveries(&self) -> Vec<Delivery> {
        std::mem::take(&mut *self.shared.deliveries())
    }

    /// Arrived messages with an id, in order of arrival; with [`SinkOptions::remember`].
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.deliveries().clone()
    }

    /// Asks the sink to stop: the sink closes its listener, ends idle sessions with 421 and gives further sessions
    /// two seconds to end their message.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        // Without the wake-up the loop notices the stop at its next tick.
        let _ = self.shared.waker.wake();
    }
}

/// A [`Sink`] on its own thread, stopped when dropped.
#[derive(Debug)]
pub struct RunningSink {
    handle: SinkHandle,
    account: CpuAccount,
    thread: Option<JoinHandle<Result<SinkCounts, SinkError>>>,
}

impl RunningSink {
    /// Starts a sink.
    ///
    /// # Errors
    ///
    /// [`SinkError::Listen`] or [`SinkError::Save`] when the sink cannot start, and
    /// [`SinkError::Loop`] when there is no thread for it.
    pub fn start(options: SinkOptions) -> Result<Self, SinkError> {
        let sink = Sink::bind(options)?;
        let handle = sink.handle();
        let started = process::thread("sink", move || sink.run());
        let (thread, account) = started.map_err(SinkError::Loop)?;
        Ok(Self {
            handle,
            account,
            thread: Some(thread),
        })
    }

    /// A sink that remembers every message and misbehaves.
    #[cfg(test)]
    pub(crate) fn faulty(faults: &[&str]) -> Self {
        let faults = faults.iter().map(|fault| fault.parse().unwrap()).collect();
        let usual = SinkOptions::remembering();
        Self::start(SinkOptions { faults, ..usual }).unwrap()
    }

    /// The handle by which further threads watch and stop the sink.
    pub const fn handle(&self) -> &SinkHandle {
        &self.handle
    }

    /// The CPU account of the sink's thread.
    pub const fn account(&self) -> &CpuAccount {
        &self.account
    }

    /// Stops the sink and returns its totals.
    ///
    /// # Errors
    ///
    /// The error that ended the sink before.
    pub fn stop(mut self) -> Result<SinkCounts, SinkError> {
        self.end().unwrap_or_else(|| Ok(self.handle.counts()))
    }

    fn end(&mut self) -> Option<Result<SinkCounts, SinkError>> {
        self.handle.stop();
        let died = || Err(SinkError::Loop(io::Error::other("the sink's thread died")));
        self.thread
            .take()
            .map(|thread| thread.join().unwrap_or_else(|_| died()))
    }
}

impl Drop for RunningSink {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests;
