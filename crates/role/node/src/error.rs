//! Why a node ends.

use std::{fmt, io};

use nix::errno::Errno;
use vere_ports::spool_log::{LogError, OpenLogError};

/// Why a node did not start, or ended.
#[derive(Debug)]
pub enum NodeError {
    /// A log cannot be opened. The node does not serve: its queues are unknown, not empty.
    Log(OpenLogError),
    /// The log of a group is damaged, and no other one can be begun in its place.
    Damaged {
        /// The group.
        group: String,
        /// What is damaged.
        reason: String,
        /// Why there is no other one.
        error: LogError,
    },
    /// The settings know no node of this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// The kernel does not let the process wait for signals.
    Signals(Errno),
    /// The system gives no thread that waits for signals.
    SignalThread(io::Error),
    /// The system refused something that the loop cannot do without.
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => write!(f, "spool log: {error}"),
            Self::Damaged {
                group,
                reason,
                error,
            } => write!(
                f,
                "spool log of group {group} is damaged ({reason}) and cannot be replaced: {error}"
            ),
            Self::Unknown { name } => write!(f, "the settings know no spool node {name}"),
            Self::Signals(error) => error.fmt(f),
            Self::SignalThread(error) => error.fmt(f),
            Self::Io { what, error } => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<OpenLogError> for NodeError {
    fn from(error: OpenLogError) -> Self {
        Self::Log(error)
    }
}

pub(super) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> NodeError {
    move |error| NodeError::Io { what, error }
}
