//! All private keys of the process, and the answers to requests.

use vere_settings::Settings;
use vere_signwire::{Answer, Reason, Request};

use super::certificates::Certificates;
use super::error::SignerError;
use super::keys::Keys;

/// The private keys, of one kind at least.
#[derive(Debug)]
pub(super) struct Secrets {
    /// Of signatures on mail.
    keys: Option<Keys>,
    /// Of handshakes.
    certificates: Option<Certificates>,
}

impl Secrets {
    pub(super) fn load(settings: &Settings) -> Result<Self, SignerError> {
        let dkim = settings.dkim.as_ref();
        let keys = dkim.map(|dkim| Keys::load(&dkim.keys)).transpose()?;
        let needs_certificates = settings.front.is_some() || settings.web.is_some();
        let certificates = needs_certificates.then(|| Certificates::load(settings));
        let certificates = certificates.transpose()?;
        match (&keys, &certificates) {
            (None, None) => Err(SignerError::NothingToSign),
            _ => Ok(Self { keys, certificates }),
        }
    }

    /// Takes over changed keys.
    pub(super) fn look_at_keys(&self) {
        if let Some(keys) = &self.keys {
            keys.look();
        }
    }

    /// Reads the keys again.
    pub(super) fn reload_keys(&self) {
        if let Some(keys) = &self.keys {
            keys.reload();
        }
    }

    /// Takes over changed certificates.
    pub(super) fn look_at_certificates(&self) {
        if let Some(certificates) = &self.certificates {
            certificates.look();
        }
    }

    /// Takes over changed settings.
    pub(super) fn reload(&self, settings: &Settings) {
        if let Some(certificates) = &self.certificates {
            certificates.reload(settings);
        }
    }

    /// Answers the questions of a process that shows certificates to strangers: neither keys nor signatures of mail.
    pub(super) fn answer_about_handshakes(&self, request: &Request<'_>) -> Answer {
        match request {
            Request::Certificate { .. } | Request::Handshake { .. } => self.answer(request),
            _ => Answer::Refused(Reason::NoKey),
        }
    }

    pub(super) fn answer(&self, request: &Request<'_>) -> Answer {
        let answer = match (request, &self.keys, &self.certificates) {
            (Request::Keys { domain }, Some(keys), _) => Some(keys.active(domain)),
            (
                Request::Sign {
                    algorithm,
                    domain,
                    selector,
                    octets,
                },
                Some(keys),
                _,
            ) => Some(keys.sign(*algorithm, domain, selector, octets)),
            (Request::Waiting, Some(keys), _) => Some(keys.waiting()),
            (Request::Seen { domain, selector }, Some(keys), _) => {
                Some(keys.seen(domain, selector))
            }
            (Request::Certificate { index }, _, Some(certificates)) => {
                Some(certificates.at(*index))
            }
            (
                Request::Handshake {
                    scheme,
                    certificate,
                    octets,
                },
                _,
                Some(certificates),
            ) => Some(certificates.sign(certificate, *scheme, octets)),
            _ => None,
        };
        answer.unwrap_or(Answer::Refused(Reason::NoKey))
    }
}

#[cfg(test)]
mod tests {
    use vere_dkim::{KeyAlgorithm, KeyStore, StoredKey};
    use vere_signwire::Algorithm;
    use vere_units::Timestamp;

    use super::*;

    /// A web server that was taken over had mail signed in the name of every domain.
    #[test]
    fn a_process_that_shows_certificates_has_no_mail_signed() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let text = format!(
            "version = 1\nhostname = \"mx.example.org\"\n[dkim]\nkeys = \"{}\"\n",
            keys.display()
        );
        let settings = Settings::parse(&text, "/etc/vere/vere.toml").expect("settings");
        let from = Timestamp::from_millis(0);
        let algorithm = KeyAlgorithm::Ed25519Sha256;
        let key = StoredKey::generate("example.org", "s", algorithm, 0, from, from);
        let store = KeyStore::new(&keys);
        store.add(&key.expect("a key")).expect("written");
        let secrets = Secrets::load(&settings).expect("a key");
        let requests = [
            Request::Keys {
                domain: "example.org",
            },
            Request::Sign {
                algorithm: Algorithm::Ed25519Sha256,
                domain: "example.org",
                selector: "s",
                octets: b"x",
            },
            Request::Waiting,
        ];
        for request in &requests {
            let refused = Answer::Refused(Reason::NoKey);
            assert_ne!(secrets.answer(request), refused, "{request:?}");
            let answer = secrets.answer_about_handshakes(request);
            assert_eq!(answer, refused, "{request:?}");
        }
    }
}
