//! The load generator: many SMTP sessions from one thread, every message accounted for.
//!
//! It sends messages with an [`MessageId`] each and records which of them were acknowledged, how
//! long the answer to the final dot took, and everything that failed. In tolerant mode nothing is
//! given up: after any failure the same message is sent again until it is acknowledged, and each
//! acknowledgement says whether an earlier attempt may have gone through as well.

mod engine;
mod source;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

pub use engine::run;
pub(crate) use source::scatter;
pub use source::{Messages, Mix};

use crate::ids::MessageId;

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEnd {
    /// After this many messages.
    Count(u32),
    /// No message begins after this time; those under way are ended.
    After(Duration),
}

/// What to send where.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server.
    pub target: SocketAddr,
    /// Connections at once, each with one message under way.
    pub sessions: usize,
    /// What to send.
    pub messages: Messages,
    /// When to end.
    pub end: LoadEnd,
    /// The run number in every [`MessageId`].
    pub run: u32,
    /// Recipients are spread over the domains `dN.bench.test` with these numbers.
    pub destinations: Range<u32>,
    /// No more messages a second than this, each begun when its time has come.
    pub rate: Option<f64>,
    /// Messages over one connection before a new one is made; all of them when `None`.
    pub messages_per_connection: Option<u32>,
    /// Send MAIL, RCPT and DATA at once where the server takes it.
    pub pipelining: bool,
    /// Retry until acknowledged.
    pub tolerant: bool,
    /// How long to wait for a connection or a reply.
    pub reply_timeout: Duration,
    /// How long the whole load may take; what is open then stays unresolved.
    pub duration_max: Duration,
    /// Append a line `ID ATTEMPTS sure|doubled?` for each acknowledged message to this file.
    pub acked_file: Option<PathBuf>,
}

impl LoadOptions {
    /// Sends the usual mix to `target` over one session until `end`.
    pub fn new(target: SocketAddr, end: LoadEnd) -> Self {
        Self {
            target,
            sessions: 1,
            messages: Messages::mix(),
            end,
            run: MessageId::random_run(),
            destinations: 0..10,
            rate: None,
            messages_per_connection: None,
            pipelining: true,
            tolerant: false,
            reply_timeout: Duration::from_secs(60),
            duration_max: Duration::from_secs(3600),
            acked_file: None,
        }
    }
}

/// Why a load could not be run; failures of single sessions are in the [`LoadReport`].
#[derive(Debug)]
pub enum LoadError {
    /// The event loop or a descriptor failed.
    Loop(io::Error),
    /// The file of acknowledged ids cannot be written.
    AckedFile {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loop(source) => write!(f, "load generator stopped: {source}"),
            Self::AckedFile { path, source } => {
                write!(f, "cannot write {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Loop(source) | Self::AckedFile { source, .. } => Some(source),
        }
    }
}

/// One acknowledged message.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// Which.
    pub id: MessageId,
    /// When its positive reply was read.
    pub at: Instant,
    /// How often it was begun, 1 when nothing failed.
    pub attempts: u32,
    /// An earlier attempt was sent whole and got no answer, or a temporary refusal after the final
    /// dot: the server may have taken it then too.
    pub may_be_doubled: bool,
}

/// What went wrong, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    /// Connections refused or not answered.
    pub connects: u64,
    /// Connections lost, or broken off by 421 or nonsense.
    pub lost: u64,
    /// Replies not given in time.
    pub timeouts: u64,
    /// Replies 4xx to a transaction.
    pub temporary: u64,
    /// Replies 5xx to a transaction.
    pub permanent: u64,
}

impl Failures {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.connects + self.lost + self.timeouts + self.temporary + self.permanent
    }
}

/// The outcome of a load.
#[derive(Debug)]
pub struct LoadReport {
    /// When the first connection was begun.
    pub began: Instant,
    /// Acknowledged messages in order of their replies.
    pub acked: Vec<Ack>,
    /// Messages refused for good, with the code; without `tolerant` also temporarily.
    pub refused: Vec<(MessageId, u16)>,
    /// Messages begun and neither acknowledged nor refused.
    pub unresolved: Vec<MessageId>,
    /// What went wrong on the way.
    pub failures: Failures,
    /// Octets of acknowledged messages as on the wire.
    pub octets: u64,
    /// Microseconds from the write of the final dot to its positive reply.
    pub reply_us: Histogram<u64>,
}

impl LoadReport {
    /// From the beginning to the last acknowledgement.
    pub fn elapsed(&self) -> Duration {
        self.acked
            .last()
            .map_or(Duration::ZERO, |ack| ack.at - self.began)
    }

    /// Acknowledged messages per second.
    pub fn acked_per_second(&self) -> f64 {
        let seconds = self.elapsed().as_secs_f64();
        if seconds > 0.0 {
            self.acked.len() as f64 / seconds
        } else {
            0.0
        }
    }
}

/// Watches and stops a load from another thread.
#[derive(Debug, Clone, Default)]
pub struct LoadProgress {
    shared: Arc<(AtomicU64, AtomicBool)>,
}

impl LoadProgress {
    /// Messages acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.shared.0.load(Ordering::Acquire)
    }

    /// Lets no further message begin.
    pub fn stop(&self) {
        self.shared.1.store(true, Ordering::Release);
    }

    fn add(&self) {
        self.shared.0.fetch_add(1, Ordering::AcqRel);
    }

    fn is_stopped(&self) -> bool {
        self.shared.1.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
