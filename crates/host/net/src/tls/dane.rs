//! Authentication by DNS: TLSA records (RFC 6698) as used in SMTP (RFC 7672).
//!
//! The records must already be validated by DNSSEC.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256, Sha512};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::provider;

/// The most records used of a host.
pub const TLSA_RECORDS_MAX: usize = 32;

/// A TLSA record (RFC 6698 section 2.1), with the numbers of the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tlsa {
    /// 2 DANE-TA, 3 DANE-EE; 0 and 1 say nothing to SMTP (RFC 7672 section 3.1.3).
    pub usage: u8,
    /// 0 for the whole certificate, 1 for the public key.
    pub selector: u8,
    /// 0 the octets themselves, 1 SHA-256, 2 SHA-512.
    pub matching: u8,
    /// The octets or the digest.
    pub data: Vec<u8>,
}

const DANE_TA: u8 = 2;
const DANE_EE: u8 = 3;
const FULL: u8 = 0;
const SHA_256: u8 = 1;
const SHA_512: u8 = 2;

impl Tlsa {
    /// Whether a client can do anything with it (RFC 7671 section 2.1, RFC 7672 section 3.1).
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let data = match self.matching {
            FULL => !self.data.is_empty(),
            SHA_256 => self.data.len() == 32,
            SHA_512 => self.data.len() == 64,
            _ => false,
        };
        data && matches!(self.usage, DANE_TA | DANE_EE) && matches!(self.selector, 0 | 1)
    }

    /// The record for a server's own certificate that survives a renewal with the same key: `3 1 1`, as RFC 7672
    /// section 3.1.1 recommends. `None` for octets that are no certificate.
    #[must_use]
    pub fn of_key(certificate: &[u8]) -> Option<Self> {
        let key = public_key(&CertificateDer::from(certificate))?;
        Some(Self {
            usage: DANE_EE,
            selector: 1,
            matching: SHA_256,
            data: Sha256::digest(key).to_vec(),
        })
    }

    fn fits(&self, certificate: &CertificateDer<'_>) -> bool {
        let octets = match self.selector {
            0 => Some(certificate.as_ref().to_vec()),
            _ => public_key(certificate),
        };
        octets.is_some_and(|octets| match self.matching {
            FULL => self.data == octets,
            SHA_256 => self.data == Sha256::digest(&octets).as_slice(),
            _ => self.data == Sha512::digest(&octets).as_slice(),
        })
    }
}

impl fmt::Display for Tlsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} ", self.usage, self.selector, self.matching)?;
        // A digest in full, of anything longer the beginning.
        for octet in self.data.iter().take(64) {
            write!(f, "{octet:02x}")?;
        }
        Ok(())
    }
}

/// The public key's field of a certificate (`SubjectPublicKeyInfo`).
fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate.as_ref()).ok()?;
    Some(parsed.tbs_certificate.subject_pki.raw.to_vec())
}

/// The records that verify a host, and the permitted names of the host.
#[derive(Clone, Debug)]
pub struct Dane {
    records: Vec<Tlsa>,
    names: Vec<ServerName<'static>>,
}

impl Dane {
    /// Takes the usable records of validated records; `None` without usable records, which leaves the server
    /// unauthenticated but not unencrypted (RFC 7672 section 2.2). A certificate below a DANE-TA record must
    /// be valid for a name in `names` (section 3.2.2).
    #[must_use]
    pub fn new(records: &[Tlsa], names: &[String]) -> Option<Self> {
        let usable = |record: &&Tlsa| record.is_usable();
        let records: Vec<Tlsa> = records
            .iter()
            .filter(usable)
            .take(TLSA_RECORDS_MAX)
            .cloned()
            .collect();
        let name = |name: &String| ServerName::try_from(name.clone()).ok();
        let names = names.iter().filter_map(name).collect();
        (!records.is_empty()).then(|| Self {
            records: strongest(records),
            names,
        })
    }

    /// Whether the chain of a server, its own certificate first, passes.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub fn accepts(&self, chain: &[Vec<u8>]) -> Result<(), String> {
        let chain: Vec<CertificateDer<'_>> = chain
            .iter()
            .map(|octets| CertificateDer::from(octets.as_slice()))
            .collect();
        let (own, others) = chain.split_first().ok_or("no certificate was presented")?;
        // Names stand in the records; the verifier asks for none.
        let name = ServerName::from(std::net::IpAddr::from([0, 0, 0, 0]));
        let verifier = DaneVerifier::new(self.clone());
        verifier
            .verify_server_cert(own, others, &name, &[], UnixTime::now())
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// RFC 7671 section 9: of the digests for a usage and selector only the strongest count, lest a weak digest
/// be enough; records with the full data always count.
fn strongest(records: Vec<Tlsa>) -> Vec<Tlsa> {
    let overruled = |record: &Tlsa| {
        record.matching == SHA_256
            && records.iter().any(|other| {
                other.matching == SHA_512
                    && (other.usage, other.selector) == (record.usage, record.selector)
            })
    };
    records
        .iter()
        .filter(|record| !overruled(record))
        .cloned()
        .collect()
}

/// No record matches the peer's certificate.
#[derive(Debug, thiserror::Error)]
#[error("no TLSA record matches the certificate")]
struct NoFit;

/// Verifies by TLSA records instead of roots.
#[derive(Debug)]
pub(super) struct DaneVerifier {
    dane: Dane,
    algorithms: WebPkiSupportedAlgorithms,
}

impl DaneVerifier {
    pub(super) fn new(dane: Dane) -> Self {
        Self {
            dane,
            algorithms: provider().signature_verification_algorithms,
        }
    }

    /// The peer's certificates that match a DANE-TA record, and the certificates contained in full in such
    /// records (RFC 7671 section 5.2).
    fn anchors(&self, shown: &[CertificateDer<'_>]) -> RootCertStore {
        let mut anchors = RootCertStore::empty();
        for record in self.dane.records.iter().filter(|r| r.usage == DANE_TA) {
            for certificate in shown.iter().filter(|c| record.fits(c)) {
                // Octets that are no certificate are no anchor.
                let _ = anchors.add(certificate.clone().into_owned());
            }
            if (record.selector, record.matching) == (0, FULL) {
                let _ = anchors.add(CertificateDer::from(record.data.clone()));
            }
        }
        anchors
    }

    fn verify_below(
        &self,
        anchors: RootCertStore,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(anchors), provider()).build();
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        let mut last = no_fit();
        for name in &self.dane.names {
            match verifier.verify_server_cert(end_entity, intermediates, name, &[], now) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

fn no_fit() -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(NoFit))))
}

impl ServerCertVerifier for DaneVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // RFC 7672 section 3.1.1: names and validity of a DANE-EE certificate are not looked at.
        let mut end_entities = self.dane.records.iter().filter(|r| r.usage == DANE_EE);
        if end_entities.any(|record| record.fits(end_entity)) {
            return Ok(ServerCertVerified::assertion());
        }
        let anchors = self.anchors(intermediates);
        if anchors.is_empty() {
            return Err(no_fit());
        }
        self.verify_below(anchors, end_entity, intermediates, now)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
