//! Sinks: where records that leave the system go, at least once and in order.
//!
//! A [`Sink`] takes a batch of lines. When the sink reports success, the lines are safe, and the copies in
//! the spool may be removed; when the sink fails, the same lines are repeated, maybe with further lines
//! behind. So a sink may see a line twice, and never misses a line; each line has an id by which the
//! reader detects duplicates.
//!
//! [`FileSink`] appends to a file and syncs the file; [`WebhookSink`] posts signed lines to a server.
//! Another kind (a message broker, say) is another implementation of the trait.

mod file;
mod webhook;

#[cfg(test)]
mod tests;

use std::future::Future;

use bytes::Bytes;

pub use file::{FileOptions, FileSink};
pub use webhook::{WebhookOptions, WebhookSink, signature};

/// Why a sink has not taken a batch; it is to be offered again later.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SinkError(pub String);

/// A store of records outside the system.
pub trait Sink {
    /// Takes lines, without line ends. On success the lines are safe.
    fn take(&mut self, lines: &[Bytes]) -> impl Future<Output = Result<(), SinkError>>;
}
