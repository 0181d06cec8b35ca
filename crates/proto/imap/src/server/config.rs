//! The host's settings for a session.

use std::net::SocketAddr;
use std::sync::Arc;

use vere_sasl::{FakeKeys, Mechanism, NonceSource};

use crate::limits::Limits;

/// The settings shared by all sessions of a listener.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Our name, in the greeting.
    pub hostname: String,
    /// The bounds.
    pub limits: Limits,
    /// The mechanisms offered, best first; LOGIN is the command's, not this list's.
    pub mechanisms: Vec<Mechanism>,
    /// Where SCRAM's nonces come from.
    pub nonces: Arc<NonceSource>,
    /// The keys for SCRAM exchanges of users that do not exist.
    pub fake_keys: FakeKeys,
}

/// The connected client, and the permissions given by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Whether STARTTLS is offered.
    pub tls_available: bool,
    /// Whether passwords may travel without TLS.
    pub may_auth_in_clear: bool,
}
