//! Certificates with their private keys, from files, kept as the files are.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::sign::CertifiedKey;
use rustls::{Error, SignatureScheme};
use vere_units::Timestamp;

use super::TlsError;
use super::certificates::{
    Certificates, Loader, Set, Stamp, fingerprint, load, load_or_kept, stamp,
};
use super::handshake::is_of_a_server;
use super::options::{Fingerprint, ServerTlsOptions};

/// Every scheme that a key of a server may sign with, best first (RFC 8446 section 4.2.3).
const SCHEMES: [SignatureScheme; 10] = [
    SignatureScheme::ED25519,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
];

/// A certificate chain as clients see the chain, and the schemes of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The server name, or `*.` and a domain; `None` for clients that request no known name.
    pub name: Option<String>,
    /// The fingerprint of the server's own certificate.
    pub fingerprint: Fingerprint,
    /// Codes of the schemes, best first (RFC 8446 section 4.2.3).
    pub schemes: Vec<u16>,
    /// The chain in DER, the server's own certificate first.
    pub chain: Vec<Vec<u8>>,
}

/// Why a handshake was not signed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotSigned {
    /// No certificate has the fingerprint.
    #[error("no certificate has this fingerprint")]
    NoCertificate,
    /// The key has no such scheme.
    #[error("the key does not sign by scheme {0:#06x}")]
    Scheme(u16),
    /// The octets do not belong to a handshake.
    #[error("expected octets of a handshake; found others")]
    NoHandshake,
    /// The library could not sign.
    #[error("the TLS library refuses: {0}")]
    Library(Error),
}

/// Whether [`Keyring::reload_if_changed`] did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// No file has changed since the last attempt.
    Unchanged,
    /// All files were loaded and are in use for new connections.
    Loaded,
}

/// The certificates and keys of a server.
#[derive(Debug)]
pub struct Keyring {
    certificates: Arc<Certificates>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    options: ServerTlsOptions,
    /// The files at the last attempt to load, successful or not.
    attempted: Stamp,
}

impl Keyring {
    /// Loads all certificates.
    ///
    /// # Errors
    /// A required file is missing or invalid, or a key does not fit its certificate, and there is no
    /// copy of earlier files.
    pub fn new(options: ServerTlsOptions) -> Result<Self, TlsError> {
        let keyring = Self {
            certificates: Arc::default(),
            state: Mutex::new(State {
                options: options.clone(),
                attempted: Stamp::default(),
            }),
        };
        keyring.replace(options, load_or_kept)?;
        Ok(keyring)
    }

    /// Whether there is a certificate: without one STARTTLS must not be offered.
    #[must_use]
    pub fn has_certificate(&self) -> bool {
        !self.certificates.current().is_empty()
    }

    /// When the certificates in use end, by the path of their file.
    #[must_use]
    pub fn certificate_ends(&self) -> Vec<(PathBuf, Timestamp)> {
        self.certificates.current().ends().to_vec()
    }

    /// Loads all files again; on an error the certificates in use stay.
    ///
    /// # Errors
    /// As [`Self::reload_with`].
    pub fn reload(&self) -> Result<(), TlsError> {
        let options = self.state().options.clone();
        self.reload_with(options)
    }

    /// Loads the files of other options; on an error the certificates and options in use stay.
    ///
    /// # Errors
    /// As [`Self::new`]; copies do not serve.
    pub fn reload_with(&self, options: ServerTlsOptions) -> Result<(), TlsError> {
        self.replace(options, load)
    }

    fn replace(&self, options: ServerTlsOptions, load: Loader) -> Result<(), TlsError> {
        let mut state = self.state();
        // Taken before reading: a change in between shows at the next look.
        state.attempted = stamp(&options);
        let set = Set::load(&options, load)?;
        state.options = options;
        self.certificates.replace(set);
        Ok(())
    }

    /// Loads all files again when one has changed since the last attempt. Costs one `stat` a file;
    /// meant to be called every minute or so.
    ///
    /// # Errors
    /// As [`Self::reload_with`]; once for each change of the files.
    pub fn reload_if_changed(&self) -> Result<Reload, TlsError> {
        let state = self.state();
        if stamp(&state.options) == state.attempted {
            return Ok(Reload::Unchanged);
        }
        drop(state);
        self.reload().map(|()| Reload::Loaded)
    }

    /// Takes over changed files, and logs the result.
    pub fn look(&self) -> Reload {
        match self.reload_if_changed() {
            Ok(Reload::Unchanged) => Reload::Unchanged,
            Ok(Reload::Loaded) => {
                tracing::info!("certificates loaded");
                Reload::Loaded
            }
            Err(error) => {
                tracing::error!(%error, "old certificates stay in use");
                Reload::Unchanged
            }
        }
    }

    /// Returns the certificates in use, the default first.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let set = self.certificates.current();
        set.named()
            .filter_map(|(name, certified)| {
                Some(Shown {
                    name: name.map(str::to_owned),
                    fingerprint: fingerprint(certified)?,
                    schemes: schemes(certified),
                    chain: certified.cert.iter().map(|der| der.to_vec()).collect(),
                })
            })
            .collect()
    }

    /// Signs for a handshake in another process. The certificates before the last change still sign, for a process without news
    /// of the change.
    ///
    /// # Errors
    /// [`NotSigned`]. Only octets of a handshake are signed.
    pub fn sign(
        &self,
        certificate: &Fingerprint,
        scheme: u16,
        octets: &[u8],
    ) -> Result<Vec<u8>, NotSigned> {
        if !is_of_a_server(octets) {
            return Err(NotSigned::NoHandshake);
        }
        let sets = [self.certificates.current(), self.certificates.previous()];
        let certified = sets.iter().find_map(|set| set.with(certificate));
        let certified = certified.ok_or(NotSigned::NoCertificate)?;
        let scheme = SignatureScheme::from(scheme);
        let signer = certified.key.choose_scheme(&[scheme]);
        let signer = signer.ok_or_else(|| NotSigned::Scheme(scheme.into()))?;
        signer.sign(octets).map_err(NotSigned::Library)
    }

    /// The certificates for a handshake in this process.
    pub(super) fn certificates(&self) -> Arc<Certificates> {
        Arc::clone(&self.certificates)
    }

    pub(super) fn handshake_timeout(&self) -> Duration {
        self.state().options.handshake_timeout
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn schemes(certified: &CertifiedKey) -> Vec<u16> {
    let has = |scheme: &&SignatureScheme| certified.key.choose_scheme(&[**scheme]).is_some();
    SCHEMES
        .iter()
        .filter(has)
        .map(|scheme| u16::from(*scheme))
        .collect()
}
