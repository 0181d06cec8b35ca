//! Why a machine cannot be invited, join, or renew its certificate.

use std::io;
use std::net::SocketAddr;
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
    /// There is no connection to the address of a token.
    #[error("expected `vere node invite` at {peer}; found no connection: {remedy}")]
    Unreachable {
        /// The address.
        peer: SocketAddr,
        /// What to look at.
        remedy: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something else than an invitation answers at the address of a token.
    #[error(
        "expected `vere node invite` at {peer}; found another program, or an invitation that is just ending"
    )]
    OtherProgram {
        /// The address.
        peer: SocketAddr,
        /// What the system or the TLS library said.
        source: io::Error,
    },
    /// The machine at the address of a token has another CA than the one of the token's fingerprint.
    #[error(
        "expected the CA of the token at {peer}; found another one: the address leads to another machine, or the CA was \
         made anew since; run `vere node invite` again, and copy its line"
    )]
    OtherMachine {
        /// The address.
        peer: SocketAddr,
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
