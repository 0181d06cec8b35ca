//! Why a node ends.

use std::io;

use nix::errno::Errno;
use vere_ports::spool_log::{LogError, OpenLogError};

/// Why a node did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A log cannot be opened. The node does not serve: its queues are unknown, not empty.
    #[error("spool log: {0}")]
    Log(OpenLogError),
    /// The log of a group is damaged, and no other one can be begun in its place.
    #[error("spool log of group {group} is damaged ({reason}) and cannot be replaced: {error}")]
    Damaged {
        /// The group.
        group: String,
        /// What is damaged.
        reason: String,
        /// Why there is no other one.
        error: LogError,
    },
    /// The settings know no node of this name.
    #[error("the settings know no spool node {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The kernel does not let the process wait for signals.
    #[error("{0}")]
    Signals(Errno),
    /// The system gives no thread that waits for signals.
    #[error("{0}")]
    SignalThread(io::Error),
    /// The system refused something that the loop cannot do without.
    #[error("cannot {what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
}

impl From<OpenLogError> for NodeError {
    fn from(error: OpenLogError) -> Self {
        Self::Log(error)
    }
}

pub(super) fn io_error(what: &'static str) -> impl FnOnce(io::Error) -> NodeError {
    move |error| NodeError::Io { what, error }
}
