//! The errors of certificate and key files.

use std::io;
use std::path::PathBuf;

/// Certificates, keys or roots cannot be used: a matter of configuration. Every variant names the
/// file.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is readable and holds no PEM block of the kind needed.
    #[error("{path} holds no {what}")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The expected content of the file: `certificate` or `private key`.
        what: &'static str,
    },
    /// A PEM block, certificate or key is damaged, or of a kind that is not supported.
    #[error("{path} cannot be used: {problem}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The error in the file.
        problem: String,
    },
    /// Each file is well, but the key is not that of the first certificate.
    #[error("the key in {key} is not that of the certificate in {certificate}")]
    Mismatch {
        /// The certificate chain.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// The machine has no root certificates and none were given.
    #[error("no root certificates: install ca-certificates or name a file ({problem})")]
    NoRoots {
        /// The reason why no roots were found.
        problem: String,
    },
    /// The TLS library refuses the configuration.
    #[error("the TLS library refuses: {source}")]
    Library {
        /// What it said.
        source: rustls::Error,
    },
}
