//! Why a machine cannot be invited, join, or renew its certificate.

use std::io;
use std::path::PathBuf;

/// Why an invitation, a join or a renewal failed.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    /// A file cannot be read or written.
    #[error("cannot {verb} {}", path.display())]
    File {
        /// `read`, `write` or the like.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key cannot be made or understood.
    #[error("cannot {verb}")]
    Certificate {
        /// The attempt.
        verb: &'static str,
        /// What the library said.
        source: rcgen::Error,
    },
    /// Files of the CA that do not belong together.
    #[error("{}: {problem}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
    /// The connection failed.
    #[error("connection with {peer}")]
    Connection {
        /// The other side.
        peer: String,
        /// What the system or the TLS library said.
        source: io::Error,
    },
    /// The TLS library refused the configuration.
    #[error("TLS cannot be set up")]
    Tls {
        /// What the library said.
        source: rustls::Error,
    },
    /// The other side sent no message of this protocol.
    #[error("the other side sent a message that this version does not understand: {0}")]
    Malformed(String),
    /// The other side refused.
    #[error("refused: {0}")]
    Refused(String),
}

impl EnrolmentError {
    /// For a failed use of a file.
    pub(crate) fn file(
        verb: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { verb, path, source }
    }

    /// For a failed use of a certificate or key.
    pub(crate) fn certificate(verb: &'static str) -> impl FnOnce(rcgen::Error) -> Self {
        move |source| Self::Certificate { verb, source }
    }

    /// For a failed connection.
    pub(crate) fn connection(peer: impl ToString) -> impl FnOnce(io::Error) -> Self {
        let peer = peer.to_string();
        move |source| Self::Connection { peer, source }
    }
}
