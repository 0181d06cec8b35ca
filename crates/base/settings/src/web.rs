//! The settings of the web server for clients and other systems.

use std::net::SocketAddr;

use vere_units::{ByteSize, Span};

/// A web server: policies, settings of mail programs, challenges of authorities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Web {
    /// Addresses for HTTPS.
    pub https: Vec<SocketAddr>,
    /// Addresses for HTTP: challenges of ACME, and redirects to HTTPS.
    pub http: Vec<SocketAddr>,
    /// The host name that mail programs connect to.
    pub host: String,
    /// The mode of the MTA-STS policy; `None` publishes no policy.
    pub mta_sts: Option<StsMode>,
    /// The lifetime of the policy, in whole seconds on the wire.
    pub mta_sts_max_age: Span,
    /// The hosts of the policy, lower case; the host name when the file gives none.
    pub mx: Vec<String>,
    /// Where finders of security holes write to, `mailto:` addresses; empty for `postmaster` at the domain.
    pub security_contact: Vec<String>,
    /// Connections at once.
    pub connections_max: u32,
    /// Connections of one IPv4 address or one IPv6 /64.
    pub connections_per_client_max: u32,
    /// Octets of the header of a request.
    pub header_size_max: ByteSize,
    /// Octets of the body of a request.
    pub body_size_max: ByteSize,
    /// The longest wait for the header of a request, the handshake apart, and for its body.
    pub request_timeout: Span,
    /// The longest time of a connection, with handshake, request and answer.
    pub connection_timeout: Span,
}

/// The mode of an MTA-STS policy (RFC 8461 section 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StsMode {
    /// No mail is sent to a host that fails validation.
    Enforce,
    /// Failures are reported, and the mail is sent.
    Testing,
    /// The policy is withdrawn.
    None,
}
