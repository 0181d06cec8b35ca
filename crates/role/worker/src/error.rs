//! Why the processes end.

use std::error::Error;
use std::fmt;
use std::io;

use vere_handoff::HandoffError;

/// Why the keeper of the workers ends.
#[derive(Debug)]
pub enum KeeperError {
    /// The settings have no section `[front]`.
    NoFront,
    /// The system refused something.
    System(io::Error),
}

/// Why a worker ends.
#[derive(Debug)]
pub enum WorkerError {
    /// The settings have no section `[front]`.
    NoFront,
    /// The packet at the standard input does not have this worker's connections.
    Links,
    /// The front broke the protocol.
    Front(HandoffError),
    /// The system refused something.
    System(io::Error),
}

const NO_FRONT: &str = "the settings have no section [front]";

impl fmt::Display for KeeperError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFront => f.write_str(NO_FRONT),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFront => f.write_str(NO_FRONT),
            Self::Links => f.write_str("expected a packet with three connections at the standard input; found none: the role `workers` starts workers"),
            Self::Front(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for KeeperError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoFront => None,
            Self::System(error) => error.source(),
        }
    }
}

impl Error for WorkerError {
    /// The display is that of the direct cause; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoFront | Self::Links => None,
            Self::Front(error) => error.source(),
            Self::System(error) => error.source(),
        }
    }
}

impl From<io::Error> for KeeperError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<io::Error> for WorkerError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<HandoffError> for WorkerError {
    fn from(error: HandoffError) -> Self {
        Self::Front(error)
    }
}
