//! The reason for the end of an incomplete benchmark, alike for every benchmark.

use std::error::Error;
use std::fmt;
use std::io;

use crate::load::LoadError;
use crate::output::WriteError;
use crate::peer::PeerError;
use crate::sink::SinkError;

/// Reason for the end of an incomplete benchmark.
#[derive(Debug)]
pub enum BenchError {
    /// A step failed.
    Step {
        /// The step, or the system.
        what: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A server answered against its protocol.
    Protocol(String),
    /// An available system could not be started.
    Peer(PeerError),
    /// The sink.
    Sink(SinkError),
    /// The load generator.
    Load(LoadError),
    /// A result cannot be written.
    Write(WriteError),
    /// A signal ended the benchmark.
    Stopped,
}

impl BenchError {
    /// The failure of a step that the kernel refused.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::of(format!("cannot {what}"))(source)
    }

    /// The failure of a step or a system.
    pub(crate) fn of<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Step {
            what: what.into(),
            source: source.into(),
        }
    }

    pub(crate) fn protocol(text: impl Into<String>) -> Self {
        Self::Protocol(text.into())
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step { what, source } => write!(f, "{what}: {source}"),
            Self::Protocol(text) => f.write_str(text),
            Self::Peer(source) => source.fmt(f),
            Self::Sink(source) => source.fmt(f),
            Self::Load(source) => source.fmt(f),
            Self::Write(source) => source.fmt(f),
            Self::Stopped => f.write_str("stopped by a signal"),
        }
    }
}

impl Error for BenchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Step { source, .. } => Some(&**source),
            Self::Peer(source) => Some(source),
            Self::Sink(source) => Some(source),
            Self::Load(source) => Some(source),
            Self::Write(source) => Some(source),
            Self::Protocol(_) | Self::Stopped => None,
        }
    }
}

impl From<PeerError> for BenchError {
    fn from(source: PeerError) -> Self {
        Self::Peer(source)
    }
}

impl From<SinkError> for BenchError {
    fn from(source: SinkError) -> Self {
        Self::Sink(source)
    }
}

impl From<LoadError> for BenchError {
    fn from(source: LoadError) -> Self {
        Self::Load(source)
    }
}

impl From<WriteError> for BenchError {
    fn from(source: WriteError) -> Self {
        Self::Write(source)
    }
}
