//! The kinds of policies and failures (RFC 8460 sections 4.3 and 4.4).

use serde::{Deserialize, Serialize};

/// The kind of a policy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum TlsPolicyKind {
    /// DANE (RFC 7672).
    Tlsa,
    /// MTA-STS (RFC 8461).
    Sts,
    /// Neither.
    #[default]
    NotFound,
}

impl TlsPolicyKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Tlsa, Self::Sts, Self::NotFound];

    /// The word of the standard.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tlsa => "tlsa",
            Self::Sts => "sts",
            Self::NotFound => "no-policy-found",
        }
    }

    /// The kind of a word, in any case.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.word().eq_ignore_ascii_case(word))
    }
}

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum TlsFailureKind {
    /// The host offers no STARTTLS.
    StartTlsNotSupported,
    /// The certificate has another name.
    CertificateHostMismatch,
    /// The certificate has expired.
    CertificateExpired,
    /// The certificate is of no trusted issuer.
    CertificateNotTrusted,
    /// Any other failure of TLS.
    #[default]
    ValidationFailure,
    /// The records of DANE cannot be used.
    TlsaInvalid,
    /// DNSSEC is not valid.
    DnssecInvalid,
    /// DANE is demanded by the sender, and not there.
    DaneRequired,
    /// The policy of MTA-STS could not be fetched.
    StsPolicyFetchError,
    /// The policy of MTA-STS is not valid.
    StsPolicyInvalid,
    /// The web server of the policy has an invalid certificate.
    StsWebpkiInvalid,
    /// A word of another document.
    Other(String),
}

impl TlsFailureKind {
    /// All kinds of RFC 8460.
    pub const ALL: [Self; 11] = [
        Self::StartTlsNotSupported,
        Self::CertificateHostMismatch,
        Self::CertificateExpired,
        Self::CertificateNotTrusted,
        Self::ValidationFailure,
        Self::TlsaInvalid,
        Self::DnssecInvalid,
        Self::DaneRequired,
        Self::StsPolicyFetchError,
        Self::StsPolicyInvalid,
        Self::StsWebpkiInvalid,
    ];

    /// The word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::StartTlsNotSupported => "starttls-not-supported",
            Self::CertificateHostMismatch => "certificate-host-mismatch",
            Self::CertificateExpired => "certificate-expired",
            Self::CertificateNotTrusted => "certificate-not-trusted",
            Self::ValidationFailure => "validation-failure",
            Self::TlsaInvalid => "tlsa-invalid",
            Self::DnssecInvalid => "dnssec-invalid",
            Self::DaneRequired => "dane-required",
            Self::StsPolicyFetchError => "sts-policy-fetch-error",
            Self::StsPolicyInvalid => "sts-policy-invalid",
            Self::StsWebpkiInvalid => "sts-webpki-invalid",
            Self::Other(word) => word,
        }
    }

    /// The kind of a word, in any case.
    #[must_use]
    pub fn of(word: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        let known = all.find(|kind| kind.word().eq_ignore_ascii_case(word));
        known.unwrap_or_else(|| Self::Other(word.to_ascii_lowercase()))
    }
}
