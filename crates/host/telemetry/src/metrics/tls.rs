//! TLS with clients and next hops.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, Label, escape, label};

label! {
    /// Our side of a handshake.
    TlsSide("side") {
        /// A client connected to us.
        Server = "server",
        /// We connected to a next hop.
        Client = "client",
    }
}

label! {
    /// What a handshake came to.
    HandshakeResult("result") {
        /// Encrypted; as a client, with a certificate that is valid for the host.
        Done = "done",
        /// Encrypted, with a certificate that proves nothing.
        Unverified = "unverified",
        /// No encryption came about.
        Failed = "failed",
    }
}

/// One handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// Our side.
    pub side: TlsSide,
    /// Its end.
    pub result: HandshakeResult,
}

impl EncodeLabelSet for Handshake {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (TlsSide::LABEL, self.side.value()),
            (HandshakeResult::LABEL, self.result.value()),
        ]
        .encode(encoder)
    }
}

impl Label for Handshake {
    fn describe() -> String {
        format!("{}; {}", TlsSide::describe(), HandshakeResult::describe())
    }
}

/// A certificate by the path of its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFile(pub String);

impl EncodeLabelSet for CertificateFile {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("file", escape(&self.0))].encode(encoder)
    }
}

impl Label for CertificateFile {
    fn describe() -> String {
        "`file`: path of the certificate".to_owned()
    }
}

/// TLS with clients and next hops.
#[derive(Clone, Debug)]
pub struct TlsMetrics {
    /// Handshakes that ended.
    pub handshakes: Family<Handshake, Counter>,
    /// When our certificates end, in seconds since 1970.
    pub certificate_expiry_seconds: Family<CertificateFile, Gauge>,
}

impl TlsMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("TLS");
        Self {
            handshakes: to.counters("tls_handshakes", "TLS handshakes that ended"),
            certificate_expiry_seconds: to.gauges(
                "tls_certificate_expiry_seconds",
                "When our certificate ends, in seconds since 1970",
            ),
        }
    }
}
