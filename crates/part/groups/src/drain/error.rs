//! Why the queues of a gateway are not drained.

use std::error::Error;
use std::fmt;
use std::io;

use vere_cluster::RegisterError;
use vere_owner::MembershipError;

use vere_link::SetupError;
use vere_process::wording::{counted, messages};

/// Why the queues of a gateway are not drained.
#[derive(Debug)]
pub enum DrainError<E> {
    /// The gateway of this name is alive.
    Alive(String),
    /// The register cannot be read.
    Register(RegisterError),
    /// The register has no gateway of this name.
    Unknown(String),
    /// The record of the group cannot be read.
    Record(MembershipError),
    /// The nodes do not let this machine have the group.
    Denied {
        /// The gateway.
        name: String,
        /// The account by which this machine asked.
        account: String,
        /// What the nodes said.
        reason: String,
    },
    /// An operator stopped the drain of this gateway before it began.
    Unchanged(String),
    /// Records are left that this version cannot read.
    Unreadable {
        /// The gateway.
        name: String,
        /// Number of records.
        unreadable: u64,
    },
    /// Another gateway took the group.
    Taken {
        /// The gateway.
        name: String,
        /// Messages left.
        left: usize,
    },
    /// An operator stopped the drain.
    Stopped {
        /// The gateway.
        name: String,
        /// Messages left.
        left: usize,
    },
    /// The group cannot be reached.
    Setup(SetupError),
    /// Deliveries cannot begin.
    Process(E),
    /// Progress cannot be written, or signals not be received.
    System(io::Error),
}

impl<E: Error> fmt::Display for DrainError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alive(name) => write!(
                f,
                "{name} lives: stop it first; --force takes its queues all the same"
            ),
            Self::Register(error) => write!(f, "cannot read the register: {error}"),
            Self::Unknown(name) => write!(f, "the register knows no queues of {name}"),
            Self::Record(error) => error.fmt(f),
            Self::Denied {
                name,
                account,
                reason,
            } => write!(
                f,
                "{name}: account {account:?}: {reason}; nothing has changed"
            ),
            Self::Unchanged(name) => write!(f, "{name}: stopped, nothing was changed"),
            Self::Unreadable { name, unreadable } => write!(
                f,
                "{name}: this version cannot read {} of those left",
                counted(*unreadable, "record", "records")
            ),
            Self::Taken { name, left } => write!(
                f,
                "{name}: another process has taken the queues, with {}; most often it is the one of \
                 that name, which is back",
                messages(*left)
            ),
            Self::Stopped { name, left } => write!(f, "{name}: stopped, {} left", messages(*left)),
            Self::Setup(error) => error.fmt(f),
            Self::Process(error) => fmt::Display::fmt(error, f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl<E: Error> Error for DrainError<E> {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Setup(error) => error.source(),
            Self::Process(error) => error.source(),
            Self::System(error) => error.source(),
            _ => None,
        }
    }
}

impl<E> From<RegisterError> for DrainError<E> {
    fn from(error: RegisterError) -> Self {
        Self::Register(error)
    }
}

impl<E> From<MembershipError> for DrainError<E> {
    fn from(error: MembershipError) -> Self {
        Self::Record(error)
    }
}

impl<E> From<SetupError> for DrainError<E> {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl<E> From<io::Error> for DrainError<E> {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
