//! Faults of the settings that only this crate sees.

use std::path::PathBuf;

use vere_ber::StringError;
use vere_mta400::{PeerError, RouteError};
use vere_net::tls::TlsError;
use vere_x400::AddressError;

/// Settings of the X.400 MTA that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// A fault of the section `[x400]`: the key, and the fault.
    #[error("x400.{0}: {1}")]
    Own(&'static str, Fault),
    /// A fault of a peer.
    #[error("x400.peer {0}: {1}")]
    Peer(String, Fault),
    /// A fault of a user.
    #[error("x400.user {0}: {1}")]
    User(String, Fault),
    /// A row of the routes.
    #[error("x400.{0}")]
    Route(#[from] RouteError),
    /// Peers that contradict each other, or that anybody can stand for.
    #[error("x400: {0}")]
    Peers(#[from] PeerError),
}

/// A fault of a value.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The text is no address.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A domain has a country and an ADMD, and a PRMD at most.
    #[error("expected a domain such as C=GB; A=Carrier; P=Acme; found {0:?}")]
    Domain(String),
    /// A character outside the type of a string.
    #[error(transparent)]
    String(#[from] StringError),
    /// The text is no content type.
    #[error("expected 2, 22 or an object identifier; found {0:?}")]
    ContentType(String),
    /// A file with a password cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file without a password.
    #[error("expected a password in the first line of {}; found none", .0.display())]
    NoPassword(PathBuf),
    /// A transport selector.
    #[error("expected a selector of 1 to 32 octets; found {0:?}")]
    Selector(String),
    /// Certificates for TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
