//! Certificates with keys in another process.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{Error, OtherError, SignatureAlgorithm, SignatureScheme};

use super::certificates::{Certificates, Set};
use super::{Fingerprint, Shown};

/// The process with the keys.
pub trait KeyHolder: Debug + Send + Sync {
    /// Has octets of a handshake signed by the key of a certificate. The thread waits for the signature.
    ///
    /// # Errors
    /// When the process refuses, or does not answer in time.
    fn sign(&self, certificate: &Fingerprint, scheme: u16, octets: &[u8]) -> io::Result<Vec<u8>>;
}

/// Certificates for handshakes here, with keys in another process.
#[derive(Debug)]
pub struct RemoteCertificates {
    certificates: Arc<Certificates>,
    holder: Arc<dyn KeyHolder>,
}

impl RemoteCertificates {
    /// No certificate yet.
    #[must_use]
    pub fn new(holder: Arc<dyn KeyHolder>) -> Self {
        Self {
            certificates: Arc::default(),
            holder,
        }
    }

    /// Shows these certificates to handshakes to come.
    pub fn show(&self, shown: Vec<Shown>) {
        let certified = shown.into_iter().map(|shown| {
            let key = RemoteKey {
                holder: Arc::clone(&self.holder),
                certificate: shown.fingerprint,
                schemes: shown
                    .schemes
                    .into_iter()
                    .map(SignatureScheme::from)
                    .collect(),
            };
            let chain = shown.chain.into_iter().map(CertificateDer::from).collect();
            (shown.name, CertifiedKey::new(chain, Arc::new(key)))
        });
        self.certificates.replace(Set::of(certified));
    }

    /// Whether there is a certificate: without one STARTTLS must not be offered.
    #[must_use]
    pub fn has_certificate(&self) -> bool {
        !self.certificates.current().is_empty()
    }

    pub(super) fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }
}

#[derive(Clone, Debug)]
struct RemoteKey {
    holder: Arc<dyn KeyHolder>,
    certificate: Fingerprint,
    /// Best first.
    schemes: Vec<SignatureScheme>,
}

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = self.schemes.iter().find(|own| offered.contains(own))?;
        Some(Box::new(RemoteSigner {
            key: self.clone(),
            scheme: *scheme,
        }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        match self.schemes.first() {
            Some(SignatureScheme::ED25519) => SignatureAlgorithm::ED25519,
            Some(
                SignatureScheme::ECDSA_NISTP256_SHA256
                | SignatureScheme::ECDSA_NISTP384_SHA384
                | SignatureScheme::ECDSA_NISTP521_SHA512,
            ) => SignatureAlgorithm::ECDSA,
            _ => SignatureAlgorithm::RSA,
        }
    }
}

#[derive(Debug)]
struct RemoteSigner {
    key: RemoteKey,
    scheme: SignatureScheme,
}

impl Signer for RemoteSigner {
    fn sign(&self, octets: &[u8]) -> Result<Vec<u8>, Error> {
        let key = &self.key;
        let signed = key
            .holder
            .sign(&key.certificate, self.scheme.into(), octets);
        signed.map_err(|error| Error::Other(OtherError(Arc::new(error))))
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}
