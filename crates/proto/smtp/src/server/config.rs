//! The host's settings for a session.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::command::Workarounds;
use crate::limits::Limits;
use vere_sasl::{FakeKeys, Mechanism, NonceSource};

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Accepts mail from other servers (port 25).
    Mx,
    /// Accepts mail from users, who must authenticate before MAIL (RFC 6409), or from networks that may
    /// relay.
    Submission,
    /// Files mail in mailboxes, by LMTP (RFC 2033): LHLO instead of EHLO, a reply for each recipient at
    /// the end of a message, no authentication.
    Lmtp,
}

/// The extensions to offer, beside the permanent extensions (PIPELINING, SIZE, 8BITMIME,
/// ENHANCEDSTATUSCODES, LIMITS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extensions {
    /// CHUNKING and BINARYMIME (RFC 3030).
    pub chunking: bool,
    /// SMTPUTF8 (RFC 6531).
    pub smtputf8: bool,
    /// DSN (RFC 3461).
    pub dsn: bool,
    /// REQUIRETLS (RFC 8689), within TLS only.
    pub require_tls: bool,
    /// MT-PRIORITY (RFC 6710), not offered over LMTP: the name of the announced policy, possibly empty;
    /// `None` does not offer the extension.
    pub mt_priority: Option<&'static str>,
}

impl Default for Extensions {
    fn default() -> Self {
        Self {
            chunking: true,
            smtputf8: true,
            dsn: true,
            require_tls: true,
            mt_priority: Some(""),
        }
    }
}

/// How clients may authenticate.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// The mechanisms offered, best first.
    pub mechanisms: Vec<Mechanism>,
    /// Where SCRAM's nonces come from.
    pub nonces: Arc<NonceSource>,
    /// The keys for SCRAM exchanges of users that do not exist.
    pub fake_keys: FakeKeys,
}

/// The settings shared by all sessions of a listener.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Our name, in the greeting and the answer to EHLO.
    pub hostname: String,
    /// The purpose of the listener.
    pub role: Role,
    /// The bounds.
    pub limits: Limits,
    /// The optional extensions.
    pub extensions: Extensions,
    /// Authentication; `None` offers no AUTH.
    pub auth: Option<AuthConfig>,
    /// Whether everything but EHLO, HELO, NOOP, STARTTLS and QUIT needs TLS first (RFC 3207 section 4);
    /// never to be set on a public MX.
    pub tls_required: bool,
    /// Whether a client that speaks before the greeting was sent is refused with `554 5.5.0`.
    pub early_talkers_refused: bool,
    /// Whether a client is refused with `554 5.5.0` for sending on behind EHLO, HELO, AUTH or DATA
    /// without waiting for the reply, forbidden by RFC 2920 section 3.1.
    pub strict_pipelining: bool,
    /// Leniency in the grammar of commands.
    pub workarounds: Workarounds,
}

impl ServerConfig {
    /// A configuration with the defaults: strict grammar, no authentication.
    #[must_use]
    pub fn new(hostname: impl Into<String>, role: Role) -> Self {
        Self {
            hostname: hostname.into(),
            role,
            limits: Limits::default(),
            extensions: Extensions::default(),
            auth: None,
            tls_required: false,
            early_talkers_refused: true,
            strict_pipelining: false,
            workarounds: Workarounds::default(),
        }
    }

    /// The policy to announce with MT-PRIORITY, if offered.
    pub(super) fn mt_priority(&self) -> Option<&'static str> {
        self.extensions
            .mt_priority
            .filter(|_| self.role != Role::Lmtp)
    }
}

/// The properties of a TLS connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsInfo {
    /// The protocol version, as `TLSv1.3`.
    pub version: String,
    /// The cipher suite, as `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The server name requested by the client.
    pub sni: Option<String>,
}

/// The connected client, and the permissions given by the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// Our address.
    pub local: SocketAddr,
    /// The client's verified name in the DNS, for the trace; nothing when unknown.
    pub name: Option<String>,
    /// Present when the connection is encrypted from the beginning (RFC 8314).
    pub tls: Option<TlsInfo>,
    /// Whether the client may send to other domains without authentication.
    pub may_relay: bool,
    /// Whether AUTH is allowed without TLS.
    pub may_auth_in_clear: bool,
    /// Whether the client may give messages a priority above 0 without authentication (RFC 6710).
    pub may_prioritise: bool,
    /// Whether XCLIENT is offered.
    pub may_xclient: bool,
    /// Whether STARTTLS is offered.
    pub tls_available: bool,
}

impl Peer {
    /// A client without special permissions.
    #[must_use]
    pub fn new(address: SocketAddr, local: SocketAddr) -> Self {
        Self {
            address,
            local,
            name: None,
            tls: None,
            may_relay: false,
            may_auth_in_clear: false,
            may_prioritise: false,
            may_xclient: false,
            tls_available: false,
        }
    }
}
