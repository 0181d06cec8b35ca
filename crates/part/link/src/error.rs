//! Why nodes or the membership register cannot be spoken to.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_cluster::RegisterError;
use vere_net::tls::TlsError;

use vere_process::secret::SecretError;

/// Why an owner of a group, or a command, cannot begin.
#[derive(Debug)]
pub enum SetupError {
    /// The membership register cannot be used.
    Register(RegisterError),
    /// A group, whose name may come from the register, can have no file.
    GroupName {
        /// The group.
        group: String,
        /// What is wrong with its name.
        problem: String,
    },
    /// The mark of the owner cannot be set.
    Mark {
        /// The folder of marks.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The key of the account cannot be used.
    Secret(SecretError),
    /// The certificates of `[spool.tls]` cannot be used.
    Certificates(TlsError),
    /// None of the nodes that hold the group stands in the settings.
    NoMember {
        /// The group.
        group: String,
        /// The nodes that hold it.
        nodes: Vec<String>,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(error) => write!(f, "cannot open the membership register: {error}"),
            Self::GroupName { group, problem } => write!(f, "name of a group {group:?}: {problem}"),
            Self::Mark { folder, source } => {
                write!(f, "cannot use {}: {source}", folder.display())
            }
            Self::Secret(error) => error.fmt(f),
            Self::Certificates(error) => error.fmt(f),
            Self::NoMember { group, nodes } => write!(
                f,
                "{group}: none of the nodes that hold it ({}) stands in the settings",
                nodes.join(", ")
            ),
        }
    }
}

impl Error for SetupError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Mark { source, .. } => source.source(),
            Self::Secret(error) => error.source(),
            Self::Certificates(error) => error.source(),
            Self::Register(_) | Self::GroupName { .. } | Self::NoMember { .. } => None,
        }
    }
}

impl From<SecretError> for SetupError {
    fn from(error: SecretError) -> Self {
        Self::Secret(error)
    }
}

impl From<TlsError> for SetupError {
    fn from(error: TlsError) -> Self {
        Self::Certificates(error)
    }
}
