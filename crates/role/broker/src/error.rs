//! Why the broker cannot begin, or apply other settings.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_net::resolver::ResolverError;
use vere_outbound::OutboundError;
use vere_ports::directory::StoreError;
use vere_process::secret::SecretError;

/// Why the broker cannot begin, or apply other settings.
#[derive(Debug)]
pub(crate) enum BrokerError {
    /// The directory of accounts cannot be opened.
    Accounts(StoreError),
    /// The directory of the socket cannot be created.
    Folder {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The socket cannot be listened on.
    Listen {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Names cannot be looked up: the zone file or the system's list of name servers.
    Resolver(ResolverError),
    /// Connections to next hops cannot be made: roots of certificates, or a password.
    Outbound(OutboundError),
    /// The key of forwarded reverse-paths cannot be had.
    Secret(SecretError),
    /// The system refused a signal.
    System(io::Error),
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accounts(error) => error.fmt(f),
            Self::Folder { path, source } => {
                write!(f, "cannot make the directory {}: {source}", path.display())
            }
            Self::Listen { path, source } => {
                write!(f, "cannot listen on {}: {source}", path.display())
            }
            Self::Resolver(error) => error.fmt(f),
            Self::Outbound(error) => error.fmt(f),
            Self::Secret(error) => error.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for BrokerError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Accounts(error) => error.source(),
            Self::Folder { source, .. } | Self::Listen { source, .. } => source.source(),
            Self::Resolver(error) => error.source(),
            Self::Outbound(error) => error.source(),
            Self::Secret(error) => error.source(),
            Self::System(error) => error.source(),
        }
    }
}

impl From<StoreError> for BrokerError {
    fn from(error: StoreError) -> Self {
        Self::Accounts(error)
    }
}

impl From<ResolverError> for BrokerError {
    fn from(error: ResolverError) -> Self {
        Self::Resolver(error)
    }
}

impl From<OutboundError> for BrokerError {
    fn from(error: OutboundError) -> Self {
        Self::Outbound(error)
    }
}

impl From<io::Error> for BrokerError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
