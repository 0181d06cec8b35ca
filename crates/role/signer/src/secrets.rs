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
