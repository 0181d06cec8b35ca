//! The errors of certificate and key files.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Certificates, keys or roots cannot be used: a matter of configuration. Every variant names the
/// file.
#[derive(Debug)]
pub enum TlsError {
    /// The file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is readable and holds no PEM block of the kind needed.
    Missing {
        /// The file.
        path: PathBuf,
        /// The expected content of the file: `certificate` or `private key`.
        what: &'static str,
    },
    /// A PEM block, certificate or key is damaged, or of a kind that is not supported.
    Invalid {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        problem: String,
    },
    /// Each file is well, but the key is not that of the first certificate.
    Mismatch {
        /// The certificate chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// The machine has no root certificates and none were given.
    NoRoots {
        /// The reason why no roots were found.
        problem: String,
    },
    /// The TLS library refuses the configuration.
    Library {
        /// What it said.
        source: rustls::Error,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Missing { path, what } => write!(f, "{} holds no {what}", path.display()),
            Self::Invalid { path, problem } => {
                write!(f, "{} cannot be used: {problem}", path.display())
            }
            Self::Mismatch { certificate, key } => write!(
                f,
                "the key in {} is not that of the certificate in {}",
                key.display(),
                certificate.display()
            ),
            Self::NoRoots { problem } => write!(
                f,
                "no root certificates: install ca-certificates or name a file ({problem})"
            ),
            Self::Library { source } => write!(f, "the TLS library refuses: {source}"),
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Library { source } => Some(source),
            Self::Missing { .. }
            | Self::Invalid { .. }
            | Self::Mismatch { .. }
            | Self::NoRoots { .. } => None,
        }
    }
}
