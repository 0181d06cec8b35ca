//! Why the process cannot send.

use std::io;
use std::path::PathBuf;

use vere_http::FileError;
use vere_net::listen::ListenError;

/// Why the process cannot start, or does not take settings.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The settings name no collector.
    #[error("expected a collector (log.otlp) in the settings")]
    NoCollector,
    /// The process has no socket by which the log arrives.
    #[error("expected a socket of the log; found none: start the process by `vere serve`")]
    NoChannel,
    /// The roots of the collector's certificate cannot be used.
    #[error(transparent)]
    Roots(#[from] FileError),
    /// The TLS library refused.
    #[error("{0}")]
    Tls(String),
    /// The file of header fields cannot be used.
    #[error("{path}: {problem}")]
    Headers {
        /// The file.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
    /// A socket cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
}
