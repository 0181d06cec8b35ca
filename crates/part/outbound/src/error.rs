//! Why connections to next hops cannot be made ready.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_net::tls::TlsError;

/// Why what connections are made with cannot be put together.
#[derive(Debug)]
pub enum OutboundError {
    /// A file cannot be read or made: of a password, or of MTA-STS policies.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of a password has none.
    NoPassword {
        /// The file.
        path: PathBuf,
    },
    /// Roots of certificates cannot be used.
    Tls(TlsError),
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable { path, source } => {
                write!(f, "cannot use {}: {source}", path.display())
            }
            Self::NoPassword { path } => write!(
                f,
                "cannot use {}: its first line holds no password",
                path.display()
            ),
            Self::Tls(error) => error.fmt(f),
        }
    }
}

impl Error for OutboundError {
    /// The display holds the text of the direct cause already; what is behind that follows here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unusable { source, .. } => source.source(),
            Self::NoPassword { .. } => None,
            Self::Tls(error) => error.source(),
        }
    }
}

impl From<TlsError> for OutboundError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}
