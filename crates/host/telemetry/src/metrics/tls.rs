//! TLS with clients and next hops.

use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::declarations::{Declarations, Label, label};

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
    /// The result of a handshake.
    HandshakeResult("result") {
        /// Encrypted; as a client, with a certificate that is valid for the host.
        Done = "done",
        /// Encrypted, with a certificate that proves no identity.
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

label! {
    /// The origin of the encryption policy for a connection to a next hop.
    TlsPolicy("policy") {
        /// No encryption is requested.
        Off = "off",
        /// Encryption where offered, with any certificate.
        Opportunistic = "opportunistic",
        /// The settings demand a valid certificate.
        Required = "required",
        /// TLSA records demand a matching certificate.
        Dane = "dane",
        /// No TLSA record is usable: encryption is demanded, with any certificate.
        DaneUnusable = "dane_unusable",
        /// The sender demands a valid certificate (REQUIRETLS).
        RequireTls = "requiretls",
        /// The domain's MTA-STS policy demands a valid certificate.
        StsEnforce = "sts_enforce",
        /// The domain's MTA-STS policy is in testing mode.
        StsTesting = "sts_testing",
    }
}

label! {
    /// Whether a connection satisfied its policy.
    PolicyResult("result") {
        /// It was.
        Kept = "kept",
        /// The policy failed; no mail was sent, except in testing mode.
        Failed = "failed",
    }
}

/// A connection to a next hop under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyOutcome {
    /// The origin of the policy.
    pub policy: TlsPolicy,
    /// Whether it was.
    pub result: PolicyResult,
}

impl EncodeLabelSet for PolicyOutcome {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [
            (TlsPolicy::LABEL, self.policy.value()),
            (PolicyResult::LABEL, self.result.value()),
        ]
        .encode(encoder)
    }
}

impl Label for PolicyOutcome {
    fn describe() -> String {
        format!("{}; {}", TlsPolicy::describe(), PolicyResult::describe())
    }
}

/// The path of a certificate's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFile(pub String);

impl EncodeLabelSet for CertificateFile {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("file", self.0.as_str())].encode(encoder)
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
    /// Connections to next hops by applied policy.
    pub policies: Family<PolicyOutcome, Counter>,
    /// When our certificates end, in seconds since 1970.
    pub certificate_expiry_seconds: Family<CertificateFile, Gauge>,
}

impl TlsMetrics {
    pub(super) fn declare(to: &mut Declarations) -> Self {
        to.section("TLS");
        Self {
            handshakes: to.counters("tls_handshakes", "TLS handshakes that ended"),
            policies: to.counters(
                "tls_policies",
                "Connections to next hops by the policy for their encryption",
            ),
            certificate_expiry_seconds: to.gauges(
                "tls_certificate_expiry_seconds",
                "When our certificate ends, in seconds since 1970",
            ),
        }
    }
}
