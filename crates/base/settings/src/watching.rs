//! How the system is watched and spoken to: metrics, age of backups, log, control socket.

use std::net::SocketAddr;
use std::path::PathBuf;

use vere_units::Span;

/// The OpenMetrics endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// The address of the metrics listener; `None` for no listener.
    pub listen: Option<SocketAddr>,
    /// The address of the mail store's metrics listener.
    pub store: Option<SocketAddr>,
    /// The address of the front's metrics listener.
    pub front: Option<SocketAddr>,
    /// The address of the metrics listener of the server of block lists.
    pub dnsbl: Option<SocketAddr>,
    /// The address of the metrics listener of the X.400 MTA.
    pub x400: Option<SocketAddr>,
    /// The address of the web server's metrics listener.
    pub web: Option<SocketAddr>,
    /// The address of the metrics listener of the process that sends the log to a collector.
    pub otlp: Option<SocketAddr>,
}

/// Watching over backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Age of the last backup from which on the state of the system is a warning; 0 for never.
    pub warn_after: Span,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The least important level written to the log.
    pub level: LogLevel,
    /// Their form.
    pub format: LogFormat,
    /// The base URL of a collector of OTLP over HTTP, to which the log goes as well.
    pub otlp: Option<String>,
    /// A file with header fields of requests to the collector.
    pub otlp_headers: Option<PathBuf>,
    /// A PEM file of roots for the collector's certificate.
    pub otlp_ca: Option<PathBuf>,
}

/// Importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// Something is odd.
    Warn,
    /// A line for each finished transaction.
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
