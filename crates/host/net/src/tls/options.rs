//! What a server shows: files, and names.

use std::path::PathBuf;
use std::time::Duration;

use super::HANDSHAKE_TIMEOUT;

/// SHA-256 of a certificate in DER.
pub type Fingerprint = [u8; 32];

/// A certificate chain, the server's own first, and its private key, both PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain.
    pub certificate: PathBuf,
    /// The key: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub key: PathBuf,
    /// Files that do not exist yet are no error, as before the first ACME order is done.
    pub may_be_missing: bool,
    /// The place for a copy of usable files (a single file with both, readable by the owner only): a
    /// start with unusable files loads the copy.
    pub kept: Option<PathBuf>,
}

impl CertificateFiles {
    /// Files that must exist.
    #[must_use]
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            may_be_missing: false,
            kept: None,
        }
    }
}

/// The certificates of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// Presented when no name matches or the client requests no name; without a default, the first of
    /// `sni`.
    pub default: Option<CertificateFiles>,
    /// Server names, or `*.` and a domain, with their certificates.
    pub sni: Vec<(String, CertificateFiles)>,
    /// Further server names with their certificates, for clients that request these names alone: none of them ever serves as the
    /// default. Names of `sni` count before.
    pub named: Vec<(String, CertificateFiles)>,
    /// Longest time for a handshake.
    pub handshake_timeout: Duration,
}

impl Default for ServerTlsOptions {
    fn default() -> Self {
        Self {
            default: None,
            sni: Vec::new(),
            named: Vec::new(),
            handshake_timeout: HANDSHAKE_TIMEOUT,
        }
    }
}
