//! The validity of a certificate: the period and the names.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use vere_units::Timestamp;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::{TlsError, certificates};

/// The period of a certificate's validity (RFC 5280 section 4.1.2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From here on.
    pub not_before: Timestamp,
    /// Until here.
    pub not_after: Timestamp,
}

/// The first certificate of a file: the server's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The period of validity.
    pub validity: Validity,
    /// The DNS names and addresses it is for, in lower case.
    pub names: Vec<String>,
    /// The content of the public key, as the field `subjectPublicKey` has it (RFC 5280 section 4.1).
    pub public_key: Vec<u8>,
}

impl Leaf {
    /// Reads the first certificate of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or its first certificate not be understood.
    pub fn of_file(path: &Path) -> Result<Self, TlsError> {
        let chain = certificates::chain(path)?;
        chain
            .first()
            .and_then(|der| Self::of(der))
            .ok_or_else(|| TlsError::Invalid {
                path: path.to_owned(),
                problem: "the first certificate cannot be parsed".to_owned(),
            })
    }

    /// Reads a DER certificate; `None` for a damaged certificate or a time before 1970.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let names = parsed.subject_alternative_name().ok()?;
        let names = names.iter().flat_map(|names| &names.value.general_names);
        Some(Self {
            validity: Validity::of(certificate)?,
            names: names.filter_map(name_text).collect(),
            public_key: parsed.public_key().subject_public_key.data.to_vec(),
        })
    }
}

fn name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        GeneralName::IPAddress(octets) => {
            let v4 = || <[u8; 4]>::try_from(*octets).ok().map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*octets).ok().map(IpAddr::from);
            v4().or_else(v6).map(|address| address.to_string())
        }
        _ => None,
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.not_before, self.not_after)
    }
}

impl Validity {
    /// Reads the validity of a DER certificate; `None` for a damaged certificate or a time before
    /// 1970.
    #[must_use]
    pub fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let validity = parsed.validity();
        Some(Self {
            not_before: timestamp(validity.not_before.timestamp())?,
            not_after: timestamp(validity.not_after.timestamp())?,
        })
    }

    /// Whether the certificate is valid at a time.
    #[must_use]
    pub fn contains(&self, time: SystemTime) -> bool {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        (self.not_before..=self.not_after).contains(&now)
    }

    /// How long the certificate is valid in all.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.not_after.saturating_since(self.not_before)
    }
}

fn timestamp(seconds: i64) -> Option<Timestamp> {
    u64::try_from(seconds)
        .ok()?
        .checked_mul(1000)
        .map(Timestamp::from_millis)
}
