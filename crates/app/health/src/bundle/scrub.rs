//! The second safeguard: the secrets of the settings are searched for in every text of a bundle.

use vere_process::failure::Failure;
use vere_units::Secret;

use super::anonymous::Pseudonyms;

/// In place of a secret.
const HIDDEN: &str = "[redacted]";
/// Shorter secrets stand in words by chance. The first safeguard, redaction by kind, has no bound.
const SHORTEST: usize = 4;

/// The replacements in texts.
#[derive(Debug)]
pub(super) struct Scrubber {
    /// The longest first, since one secret may contain another.
    secrets: Vec<Secret<String>>,
    pseudonyms: Option<Pseudonyms>,
}

impl Scrubber {
    /// # Errors
    /// When the system gives no random octets for pseudonyms.
    pub(super) fn new(anonymous: bool) -> Result<Self, Failure> {
        Ok(Self {
            secrets: Vec::new(),
            pseudonyms: anonymous.then(Pseudonyms::new).transpose()?,
        })
    }

    /// Adds each secret in its plain form and in the form of JSON.
    pub(super) fn add(&mut self, secrets: Vec<Secret<String>>) {
        for secret in secrets {
            let plain = secret.expose();
            if plain.len() < SHORTEST {
                continue;
            }
            let quoted = serde_json::Value::from(plain.as_str()).to_string();
            let inner = quoted.trim_matches('"').to_owned();
            if inner != *plain {
                self.secrets.push(Secret::new(inner));
            }
            self.secrets.push(secret);
        }
        self.secrets
            .sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    }

    /// The text without secrets, and with pseudonyms if they are wanted.
    pub(super) fn scrub(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.expose().as_str()) {
                text = text.replace(secret.expose().as_str(), HIDDEN);
            }
        }
        match &self.pseudonyms {
            Some(pseudonyms) => pseudonyms.replace(&text),
            None => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_every_form() {
        let mut scrubber = Scrubber::new(false).unwrap();
        let secrets = ["pass\"word", "pass", "abc"];
        scrubber.add(secrets.map(|text| Secret::new(text.to_owned())).to_vec());
        let text = "a pass\"word, {\"x\":\"pass\\\"word\"}, passage, abc";
        let expected = "a [redacted], {\"x\":\"[redacted]\"}, [redacted]age, abc";
        assert_eq!(scrubber.scrub(text), expected);
    }
}
