//! Why a process cannot own its group.

use std::error::Error;
use std::fmt;

use vere_link::SetupError;

/// Why a process cannot own its group.
#[derive(Debug)]
pub enum OwnError {
    /// The group of queues cannot be reached.
    Setup(SetupError),
    /// Another process of this name is alive.
    Namesake {
        /// The name.
        group: String,
    },
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Namesake { group } => write!(
                f,
                "another process named {group} lives and has the queues: each needs a name of its own"
            ),
        }
    }
}

impl Error for OwnError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Setup(error) => error.source(),
            Self::Namesake { .. } => None,
        }
    }
}

impl From<SetupError> for OwnError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}
