//! The kinds of faults of a certificate, as reports about TLS count them (RFC 8460 section 4.3.1).

use rustls::CertificateError;

/// Why a certificate proves no identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// The certificate has no such name.
    Name,
    /// The certificate has expired.
    Expired,
    /// The time of the certificate has not begun.
    Early,
    /// Nobody vouches for the certificate: an unknown issuer, a broken chain, no matching TLSA record.
    Untrusted,
}

impl CertificateFault {
    pub(super) const fn of(error: &CertificateError) -> Self {
        match error {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::Name
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::Early
            }
            _ => Self::Untrusted,
        }
    }
}
