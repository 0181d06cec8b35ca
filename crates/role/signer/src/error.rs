//! Why the signer cannot begin, or go on.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use vere_dkim::KeyError;
use vere_process::tls::ServerTlsError;

/// Why the signer cannot begin, or go on.
#[derive(Debug)]
pub(crate) enum SignerError {
    /// The settings have neither a section `[dkim]` nor a section `[front]`.
    NothingToSign,
    /// The certificates cannot be loaded.
    Certificates(ServerTlsError),
    /// The kernel does not keep the memory of the process private.
    Memory(Errno),
    /// The folder of keys cannot be read.
    Keys(KeyError),
    /// The socket cannot be listened on.
    Listen {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The system refused a thread, a signal, or an option of the socket.
    System(io::Error),
}

impl fmt::Display for SignerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToSign => {
                f.write_str("expected a section [dkim] or [front]; found neither")
            }
            Self::Certificates(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Keys(error) => error.fmt(f),
            Self::Listen { path, source } => {
                write!(f, "cannot listen on {}: {source}", path.display())
            }
            Self::System(error) => error.fmt(f),
        }
    }
}

impl Error for SignerError {
    /// The display holds the text of the direct cause already; deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NothingToSign => None,
            Self::Certificates(error) => error.source(),
            Self::Memory(error) => error.source(),
            Self::Keys(error) => error.source(),
            Self::Listen { source, .. } => source.source(),
            Self::System(error) => error.source(),
        }
    }
}

impl From<Errno> for SignerError {
    fn from(error: Errno) -> Self {
        Self::Memory(error)
    }
}

impl From<KeyError> for SignerError {
    fn from(error: KeyError) -> Self {
        Self::Keys(error)
    }
}

impl From<ServerTlsError> for SignerError {
    fn from(error: ServerTlsError) -> Self {
        Self::Certificates(error)
    }
}

impl From<io::Error> for SignerError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}
