//! How the system is watched and spoken to: metrics, log, control socket.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The OpenMetrics endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Where it listens; none without an address.
    pub listen: Option<SocketAddr>,
    /// Where that of the mail store listens.
    pub store: Option<SocketAddr>,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The least important events that are written.
    pub level: LogLevel,
    /// Their form.
    pub format: LogFormat,
}

/// Importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// Something is odd.
    Warn,
    /// One line for each finished transaction.
    Info,
    /// Steps of transactions.
    Debug,
    /// The protocol itself.
    Trace,
}

/// Form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object for programs.
    Json,
}

/// The socket of the commands that talk to a running system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its path.
    pub socket: PathBuf,
}
