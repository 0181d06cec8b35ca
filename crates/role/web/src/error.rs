//! Why the web server ends.

use std::io;

use vere_net::listen::ListenError;
use vere_net::tls::TlsError;

/// Why the server cannot start, or does not take settings.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The settings have no section `[web]`.
    #[error("expected a section [web] in the settings")]
    NoSection,
    /// The process has no socket by which the signer is asked.
    #[error("expected a socket of the signer; found none: start the web server by `vere serve`")]
    NoSigner,
    /// A socket cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The TLS library refused.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] io::Error),
}
