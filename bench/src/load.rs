//! The load generator: many SMTP sessions from one thread, every message accounted for.
//!
//! The generator sends messages with a [`MessageId`] each and records the acknowledged messages, the reply times of
//! final dots, and every failure. In tolerant mode no message is given up: after any failure the message is sent
//! again until the server acknowledges the message, and each acknowledgement notes whether an earlier attempt may
//! have succeeded as well.

mod engine;
mod letters;
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
pub use letters::{Letter, Letters};
pub(crate) use source::scatter;
pub use source::{Messages, Mix};

use crate::ids::MessageId;

/// When a load ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEnd {
    /// After this many messages.
    Count(u32),
    /// No message begins after this time; messages under way are finished.
    After(Duration),
}

/// The load, and its target.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// The server.
    pub target: SocketAddr,
    /// Connections at once, each with a message under way.
    pub sessions: usize,
    /// The messages of the load.
    pub messages: Messages,
    /// When to end.
    pub end: LoadEnd,
    /// The run number in every [`MessageId`].
    pub run: u32,
    /// Recipients are spread over the domains `dN.bench.test` with N in this range.
    pub destinations: Range<u32>,
    /// At most this many messages a second, each begun at its time.
    pub rate: Option<f64>,
    /// Messages over a connection before the next connection; all messages when `None`.
    pub messages_per_connection: Option<u32>,
    /// Send MAIL, RCPT and DATA at once where the server announces PIPELINING.
    pub pipelining: bool,
    /// Retry until acknowledged.
    pub tolerant: bool,
    /// How long to wait for a connection or a reply.
    pub reply_timeout: Duration,
    /// Limit of the time of the whole load; messages still open then remain unresolved.
    pub duration_max: Duration,
    /// Append a line `ID ATTEMPTS sure|doubled?` for each acknowledged message to this file.
    pub acked_file: Option<PathBuf>,
}

impl LoadOptions {
    /// Sends the usual mix to `target` over a single session until `end`.
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
        /// The error of the kernel.
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

/// An acknowledged message.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// The id of the message.
    pub id: MessageId,
    /// Time when the positive reply was read.
    pub at: Instant,
    /// Number of attempts, 1 without a failure.
    pub attempts: u32,
    /// An earlier attempt was sent whole and got no answer, or a temporary refusal after the final
    /// dot: the server may have taken it then too.
    pub may_be_doubled: bool,
}

/// Failures, by kind.
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
    /// The sum of all failures.
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
    /// The failures during the load.
    pub failures: Failures,
    /// Octets of acknowledged messages as on the wire.
    pub octets: u64,
    /// Microseconds from the write of the final dot to the positive reply.
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
