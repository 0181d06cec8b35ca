//! Why lines about messages cannot be sent.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use vere_export::SinkError;

/// Why the sink of lines cannot be made.
#[derive(Debug)]
pub enum EventTargetError {
    /// The secret of the signature cannot be read.
    Secret {
        /// Its file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Authorities cannot be read, or the library for TLS not be used.
    Webhook(SinkError),
}

impl fmt::Display for EventTargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())
            }
            Self::Webhook(error) => error.fmt(f),
        }
    }
}

impl Error for EventTargetError {
    /// The display holds the text of the direct cause already; the deeper causes follow here.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Secret { source, .. } => source.source(),
            Self::Webhook(_) => None,
        }
    }
}
