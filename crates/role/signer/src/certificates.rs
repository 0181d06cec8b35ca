//! The certificates of the front, and the signatures of handshakes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sha2::{Digest as _, Sha256};
use vere_net::tls::{Keyring, NotSigned, Reload, Shown};
use vere_process::published::Stamp;
use vere_process::tls::{self, ServerTlsError};
use vere_process::web_names;
use vere_settings::Settings;
use vere_signwire::{Answer, Certificate, Fingerprint, Reason};

/// The certificates, with private keys.
#[derive(Debug)]
pub(super) struct Certificates {
    keyring: Keyring,
    list: RwLock<Arc<List>>,
    web_names: Mutex<WebNames>,
}

/// The files of certificates for web names at the last look, in a directory of these settings.
#[derive(Debug)]
struct WebNames {
    settings: Settings,
    files: Vec<(PathBuf, Option<Stamp>)>,
}

impl WebNames {
    fn of(settings: &Settings) -> Self {
        Self {
            files: web_names::listing(settings),
            settings: settings.clone(),
        }
    }
}

/// What is told of the certificates.
#[derive(Debug)]
struct List {
    revision: u64,
    certificates: Vec<Certificate>,
}

impl Certificates {
    /// Loads the certificates of the settings.
    ///
    /// # Errors
    /// When a file is missing or wrong, and none that could be used is kept.
    pub(super) fn load(settings: &Settings) -> Result<Self, ServerTlsError> {
        let web_names = Mutex::new(WebNames::of(settings));
        let keyring = tls::keyring(settings)?;
        let list = RwLock::new(Arc::new(List::of(&keyring)));
        Ok(Self {
            keyring,
            list,
            web_names,
        })
    }

    /// Takes over changed files.
    pub(super) fn look(&self) {
        if let Some(settings) = self.with_other_web_names() {
            self.reload(&settings);
        }
        if self.keyring.look() == Reload::Loaded {
            self.tell();
        }
    }

    /// The settings, if there are other certificates for web names than at the last look.
    fn with_other_web_names(&self) -> Option<Settings> {
        let known = self
            .web_names
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_changed = web_names::listing(&known.settings) != known.files;
        is_changed.then(|| known.settings.clone())
    }

    /// Loads the certificates of changed settings; on an error the old certificates stay.
    pub(super) fn reload(&self, settings: &Settings) {
        // Taken before reading: a change in between shows at the next look.
        let web_names = WebNames::of(settings);
        *self
            .web_names
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = web_names;
        match tls::reload(&self.keyring, settings) {
            Ok(()) => self.tell(),
            Err(error) => tracing::error!(%error, "old certificates stay in use"),
        }
    }

    fn tell(&self) {
        let list = Arc::new(List::of(&self.keyring));
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
    }

    /// Answers with the certificate at a place.
    pub(super) fn at(&self, index: u16) -> Answer {
        let list = Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner));
        Answer::Certificate {
            revision: list.revision,
            count: u16::try_from(list.certificates.len()).unwrap_or(u16::MAX),
            certificate: list.certificates.get(usize::from(index)).cloned(),
        }
    }

    /// Signs octets of a handshake.
    pub(super) fn sign(&self, certificate: &Fingerprint, scheme: u16, octets: &[u8]) -> Answer {
        match self.keyring.sign(certificate, scheme, octets) {
            Ok(signature) => Answer::Signed(signature),
            Err(NotSigned::NoCertificate) => Answer::Refused(Reason::NoKey),
            Err(error) => {
                tracing::error!(%error, "handshake not signed");
                Answer::Refused(Reason::Failed)
            }
        }
    }
}

impl List {
    fn of(keyring: &Keyring) -> Self {
        let mut certificates: Vec<_> = keyring.shown().into_iter().map(on_wire).collect();
        // The default, without a name, first.
        certificates.sort_by(|one, other| one.name.cmp(&other.name));
        // Equal lists have one revision, also across a restart.
        let mut hash = Sha256::new();
        for certificate in &certificates {
            hash.update(certificate.name.as_bytes());
            hash.update([0]);
            for der in &certificate.chain {
                hash.update(Sha256::digest(der));
            }
        }
        let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
        Self {
            revision: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            certificates,
        }
    }
}

fn on_wire(shown: Shown) -> Certificate {
    Certificate {
        name: shown.name.unwrap_or_default(),
        fingerprint: shown.fingerprint,
        schemes: shown.schemes,
        chain: shown.chain,
    }
}
