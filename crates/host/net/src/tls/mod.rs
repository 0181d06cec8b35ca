//! TLS by rustls: servers with certificates in files, clients with two degrees of trust.
//!
//! - [`ServerTls`] accepts connections; the server chooses a certificate by the name that the client
//!   requests, and loads new files while running, keeping the old certificates when the new files are
//!   invalid.
//! - [`ClientTls`] connects, either refusing a certificate that is not valid for the next hop's name, or
//!   continuing and recording the result in [`TlsInfo`] (opportunistic TLS, RFC 7435).
//! - [`Dane`] verifies a next hop by TLSA records that DNSSEC has proven, instead of by roots.
//! - [`TlsProxy`] encrypts connections in threads of its own; the keys may be in another process
//!   ([`Keyring`] there, [`RemoteCertificates`] here), and the kernel may follow on the threads ([`kernel`]).
//! - [`MutualTls`] is for connections between our own processes, where both sides show a certificate.
//!
//! TLS 1.2 and 1.3 with the ring provider; sessions are resumed by tickets. A handshake has a time limit of
//! its own. A connection without TLS has no cost here.
//!
//! Not covered: client certificates of mail clients (a server that asks is [`ServerTls::asking`]), certificates before X.509 version 3 (with
//! such a certificate no TLS connection is possible, not even opportunistic).

mod certificates;
mod client;
mod dane;
mod error;
mod fault;
mod handshake;
pub mod kernel;
mod keyring;
mod mutual;
mod options;
mod proxy;
mod remote;
mod remote_server;
mod server;
mod validity;

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite, CommonState, HandshakeKind, ProtocolVersion};

pub use certificates::check as check_files;
pub use client::{ClientTls, ConnectTlsError, Roots, Verification};
pub use dane::{Dane, TLSA_RECORDS_MAX, Tlsa};
pub use error::TlsError;
pub use fault::CertificateFault;
pub use kernel::KernelTls;
pub use keyring::{Keyring, NotSigned, Reload, Shown};
pub use mutual::{Line, MutualTls, MutualTlsOptions};
pub use options::{CertificateFiles, Fingerprint, ServerTlsOptions};
pub use proxy::{Carrier, Handshakes, Job, JobName, ProxyOptions, Secured, TlsProxy};
pub use remote::{KeyHolder, RemoteCertificates};
pub use remote_server::{ChallengeCertificates, RemoteServer};
pub use server::ServerTls;
pub use validity::{Leaf, Validity};

/// The TLS streams returned by [`ServerTls::accept`] and [`ClientTls::connect`].
pub use tokio_rustls::{client::TlsStream as ClientStream, server::TlsStream as ServerStream};

/// Longest time for a handshake unless set otherwise.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// The properties of an encrypted connection after the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite by the name in the IANA registry.
    pub cipher: &'static str,
    /// The server name the client asked for.
    pub sni: Option<String>,
    /// The peer's certificate, if requested.
    pub certificate: PeerCertificate,
    /// Whether a ticket of an earlier connection took the place of certificate and signature.
    pub is_resumed: bool,
}

/// The result of verifying the peer's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerCertificate {
    /// No certificate was requested, or the client showed none.
    NotAsked,
    /// A root of the server has issued the client's certificate, which has these DNS names and addresses.
    Client(Vec<String>),
    /// The certificate is valid for the name of the connection.
    Valid,
    /// The certificate proves no identity, for this reason; the connection is encrypted all the same.
    Invalid(CertificateFault, String),
}

impl TlsInfo {
    fn new(state: &CommonState, sni: Option<String>, certificate: PeerCertificate) -> Self {
        Self {
            version: state.protocol_version().map_or("unknown", version_name),
            cipher: state
                .negotiated_cipher_suite()
                .map_or("unknown", |c| cipher_name(c.suite())),
            sni,
            certificate,
            is_resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }
}

const fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    }
}

/// rustls writes `TLS13_` where the registry has `TLS_`.
fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(test)]
mod tests;
