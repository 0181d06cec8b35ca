//! Sinks: where records that leave the system go, at least once and in order.
//!
//! A [`Sink`] takes a batch of lines. When it says that it has them, they are safe there, and their copies
//! in the spool may go; when it fails, the same lines come again, maybe with more behind them. So a
//! sink may see a line twice, and never misses one; each line has an id by which its reader tells.
//!
//! [`FileSink`] appends to a file and syncs it; [`WebhookSink`] posts to a server and signs what it posts.
//! Another kind (a message broker, say) is another implementation of the trait.

mod file;
mod webhook;

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;

use bytes::Bytes;

pub use file::{FileOptions, FileSink};
pub use webhook::{WebhookOptions, WebhookSink, signature};

/// Why a sink has not taken a batch; it is to be offered again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkError(pub String);

impl fmt::Display for SinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SinkError {}

/// Something that keeps records.
pub trait Sink {
    /// Takes these lines, each without its line end. They are safe when this succeeds.
    fn take(&mut self, lines: &[Bytes]) -> impl Future<Output = Result<(), SinkError>>;
}
