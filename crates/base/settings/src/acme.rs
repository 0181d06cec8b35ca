//! The settings of certificates from a certificate authority.

use std::net::SocketAddr;
use std::path::PathBuf;

use vere_units::Span;

/// Certificates from a certificate authority (RFC 8555).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    /// The authority's directory, an https address.
    pub directory: String,
    /// Where the authority writes to, `mailto:` addresses.
    pub contact: Vec<String>,
    /// The names of the certificate, lower case; the host name when the file gives none.
    pub domains: Vec<String>,
    /// A PEM file of roots that the authority's own server is checked against, for test servers.
    pub root: Option<PathBuf>,
    /// How the authority sees that the names are ours.
    pub challenge: AcmeChallenge,
    /// Where challenges of type http-01 are answered.
    pub listen: Vec<SocketAddr>,
    /// Where challenges of type tls-alpn-01 are answered; empty with another type.
    pub tls_listen: Vec<SocketAddr>,
    /// Who publishes records for challenges of type dns-01.
    pub dns: AcmeDns,
}

/// The type of challenges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcmeChallenge {
    /// A file over HTTP (RFC 8555 section 8.3).
    Http01,
    /// A certificate in a handshake (RFC 8737).
    TlsAlpn01,
    /// A record in the DNS (RFC 8555 section 8.4).
    Dns01,
}

/// Who publishes records: a name server or a program, and exactly one of them for dns-01.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcmeDns {
    /// The name server that takes updates (RFC 2136).
    pub server: Option<SocketAddr>,
    /// The zone of the updates; `None` for the nearest zone that the server knows.
    pub zone: Option<String>,
    /// The file of the key that signs updates (TSIG).
    pub key: Option<PathBuf>,
    /// The program.
    pub hook: Option<PathBuf>,
    /// Time between the records and the look of the authority.
    pub wait: Span,
}
