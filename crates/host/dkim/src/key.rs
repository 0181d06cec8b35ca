//! A key: the purpose, the times of use, and the file format.
//!
//! The file of a key, `FOLDER/DOMAIN/SELECTOR.toml`, mode 0600; times are seconds since the Unix epoch:
//!
//! ```toml
//! version = 1
//! algorithm = "rsa-sha256"     # or "ed25519-sha256"
//! created = 1767225600
//! active_from = 1767398400     # signs from then on, unless a younger key does
//! retire_at = 1768003200       # signs no more; its record may leave the DNS. Optional.
//! public = "..."               # base64: SubjectPublicKeyInfo for RSA, 32 octets for Ed25519
//! private = "..."              # base64: PKCS #1 for RSA, PKCS #8 for Ed25519
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_auth::common::crypto::{Ed25519Key, RsaKey, Sha256, SigningKey};
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use rsa::pkcs8::EncodePublicKey as _;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer};
use serde::{Deserialize, Serialize};
use vere_units::{Secret, Timestamp};

use crate::waiting::Waiting;

/// The version of files written by this code, and the newest version that can be read.
const FILE_VERSION: u32 = 1;
/// Octets of text in one string of a TXT record (RFC 1035 section 3.3).
const TXT_STRING_MAX: usize = 255;
/// The RSA key sizes accepted by receivers (RFC 8301 section 3.2) and by this program.
pub const RSA_BITS: [usize; 3] = [2048, 3072, 4096];

/// Why a key cannot be had or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The system's fault: a file or folder.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
    /// The content of the file is no key, with the reason.
    #[error("{0} is no key: {1}")]
    Malformed(PathBuf, String),
    /// The file of a waiting key is damaged, with the reason; the key waits.
    #[error("{0} does not say why its key waits: {1}")]
    Waiting(PathBuf, String),
    /// A newer program wrote the file.
    #[error("{0} has format version {1}, this program reads up to {FILE_VERSION}")]
    Version(PathBuf, u32),
    /// A key of this name exists already.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// The name is no valid domain or selector.
    #[error("{0:?} is no domain or selector")]
    Name(String),
    /// RSA keys of this size are not supported.
    #[error("RSA keys have {RSA_BITS:?} bits, not {0}")]
    Bits(usize),
    /// The library refused, and why.
    #[error("key cannot be used: {0}")]
    Library(String),
}

/// How a key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyAlgorithm {
    /// RSA with SHA-256, supported by every verifier.
    RsaSha256,
    /// Ed25519 with SHA-256: short and fast, verified by some.
    Ed25519Sha256,
}

impl KeyAlgorithm {
    /// The name of the `a=` tag.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RsaSha256 => "rsa-sha256",
            Self::Ed25519Sha256 => "ed25519-sha256",
        }
    }

    /// The name of the `k=` tag.
    const fn key_type(self) -> &'static str {
        match self {
            Self::RsaSha256 => "rsa",
            Self::Ed25519Sha256 => "ed25519",
        }
    }
}

impl FromStr for KeyAlgorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "rsa-sha256" => Ok(Self::RsaSha256),
            "ed25519-sha256" => Ok(Self::Ed25519Sha256),
            other => Err(format!("unknown algorithm {other}")),
        }
    }
}

/// A stored key.
#[derive(Debug, Clone)]
pub struct StoredKey {
    /// The domain whose mail is signed.
    pub domain: String,
    /// The selector of the public key: `SELECTOR._domainkey.DOMAIN`.
    pub selector: String,
    /// How it signs.
    pub algorithm: KeyAlgorithm,
    /// The time of creation.
    pub created: Timestamp,
    /// The time from which the key signs, unless a younger key signs.
    pub active_from: Timestamp,
    /// The time from which the key does not sign any more, and the record may leave the DNS.
    pub retire_at: Option<Timestamp>,
    /// Present while the key waits until its record is seen; the store keeps it in a file beside the key.
    pub waits: Option<Waiting>,
    /// The public half as the `p=` tag has it, before base64.
    pub public: Vec<u8>,
    private: Secret<Vec<u8>>,
}

/// The text of a key's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    version: u32,
    algorithm: String,
    created: u64,
    active_from: u64,
    retire_at: Option<u64>,
    public: String,
    private: String,
}

impl StoredKey {
    /// Generates a key that signs from `active_from` on. `bits` is the size of an RSA key.
    ///
    /// # Errors
    /// An invalid name, an unsupported size, or an error of the library.
    pub fn generate(
        domain: &str,
        selector: &str,
        algorithm: KeyAlgorithm,
        bits: usize,
        now: Timestamp,
        active_from: Timestamp,
    ) -> Result<Self, KeyError> {
        check_name(domain)?;
        check_name(selector)?;
        let (public, private) = match algorithm {
            KeyAlgorithm::RsaSha256 => generate_rsa(bits)?,
            KeyAlgorithm::Ed25519Sha256 => {
                let private = Ed25519Key::generate_pkcs8().map_err(library)?;
                let key = Ed25519Key::from_pkcs8_der(&private).map_err(library)?;
                (key.public_key(), private)
            }
        };
        Ok(Self {
            domain: domain.to_owned(),
            selector: selector.to_owned(),
            algorithm,
            created: now,
            active_from,
            retire_at: None,
            waits: None,
            public,
            private: Secret::new(private),
        })
    }

    /// Whether the key may sign at this time, if no younger key signs.
    #[must_use]
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.waits.is_none()
            && self.active_from <= now
            && self.retire_at.is_none_or(|retire| retire > now)
    }

    /// Whether the key is to sign later, by its time or because its record was not seen yet.
    #[must_use]
    pub fn is_to_come(&self, now: Timestamp) -> bool {
        !self.is_retired(now) && (self.waits.is_some() || self.active_from > now)
    }

    /// Whether the key is retired at this time.
    #[must_use]
    pub fn is_retired(&self, now: Timestamp) -> bool {
        self.retire_at.is_some_and(|retire| retire <= now)
    }

    /// The key, ready to sign.
    ///
    /// # Errors
    /// The private key is malformed.
    pub fn private(&self) -> Result<PrivateKey, KeyError> {
        let octets = self.private.expose().as_slice();
        Ok(match self.algorithm {
            KeyAlgorithm::RsaSha256 => {
                let der = PrivateKeyDer::Pkcs1(PrivatePkcs1KeyDer::from(octets));
                PrivateKey::Rsa(RsaKey::from_key_der(der).map_err(library)?)
            }
            KeyAlgorithm::Ed25519Sha256 => {
                PrivateKey::Ed25519(Ed25519Key::from_pkcs8_der(octets).map_err(library)?)
            }
        })
    }

    /// The name of the record in the DNS.
    #[must_use]
    pub fn record_name(&self) -> String {
        format!("{}._domainkey.{}", self.selector, self.domain)
    }

    /// The text of the record (RFC 6376 section 3.6.1, RFC 8463 section 4.2).
    #[must_use]
    pub fn record_text(&self) -> String {
        let kind = self.algorithm.key_type();
        format!("v=DKIM1; k={kind}; p={}", STANDARD.encode(&self.public))
    }

    /// The record as a line of a zone file.
    #[must_use]
    pub fn zone_line(&self) -> String {
        format!(
            "{}. IN TXT ( {} )",
            self.record_name(),
            self.record_strings()
        )
    }

    /// The text of the record, cut into strings of permitted length, in quotes.
    #[must_use]
    pub fn record_strings(&self) -> String {
        let text = self.record_text();
        let strings: Vec<_> = text
            .as_bytes()
            .chunks(TXT_STRING_MAX)
            .map(|part| format!("\"{}\"", String::from_utf8_lossy(part)))
            .collect();
        strings.join(" ")
    }

    /// The text of the key's file.
    pub(crate) fn to_text(&self) -> String {
        let file = KeyFile {
            version: FILE_VERSION,
            algorithm: self.algorithm.name().to_owned(),
            created: seconds(self.created),
            active_from: seconds(self.active_from),
            retire_at: self.retire_at.map(seconds),
            public: STANDARD.encode(&self.public),
            private: STANDARD.encode(self.private.expose()),
        };
        // Plain fields always have a form in TOML.
        toml::to_string(&file).unwrap_or_default()
    }

    pub(crate) fn from_text(
        path: &Path,
        domain: &str,
        selector: &str,
        text: &str,
    ) -> Result<Self, KeyError> {
        // What the parser says may quote the file: the private half must not get into a log.
        let malformed = |why: &str| KeyError::Malformed(path.to_owned(), why.to_owned());
        let version = toml::from_str::<toml::Table>(text)
            .ok()
            .and_then(|table| table.get("version")?.as_integer())
            .and_then(|version| u32::try_from(version).ok())
            .ok_or_else(|| malformed("no version"))?;
        if version != FILE_VERSION {
            return Err(KeyError::Version(path.to_owned(), version));
        }
        let file: KeyFile =
            toml::from_str(text).map_err(|_| malformed("a field is missing or unknown"))?;
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| malformed("no base64"));
        Ok(Self {
            domain: domain.to_owned(),
            selector: selector.to_owned(),
            algorithm: file
                .algorithm
                .parse()
                .map_err(|why: String| malformed(&why))?,
            created: at(file.created),
            active_from: at(file.active_from),
            retire_at: file.retire_at.map(at),
            waits: None,
            public: decode(&file.public)?,
            private: Secret::new(decode(&file.private)?),
        })
    }
}

/// A private key, ready to sign.
pub enum PrivateKey {
    /// RSA.
    Rsa(RsaKey<Sha256>),
    /// Ed25519.
    Ed25519(Ed25519Key),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rsa(_) => "PrivateKey::Rsa",
            Self::Ed25519(_) => "PrivateKey::Ed25519",
        })
    }
}

impl PrivateKey {
    /// Signs the octets of a [`Draft`](crate::Draft).
    ///
    /// # Errors
    /// The library's.
    pub fn sign(&self, octets: &[u8]) -> Result<Vec<u8>, KeyError> {
        match self {
            Self::Rsa(key) => key.sign(octets),
            Self::Ed25519(key) => key.sign(octets),
        }
        .map_err(library)
    }
}

fn generate_rsa(bits: usize) -> Result<(Vec<u8>, Vec<u8>), KeyError> {
    if !RSA_BITS.contains(&bits) {
        return Err(KeyError::Bits(bits));
    }
    let key = rsa::PrivateKey::new(&mut getrandom::SysRng, bits).map_err(library)?;
    let private = key.to_pkcs1_der().map_err(library)?;
    let public = key.to_public_key().to_public_key_der().map_err(library)?;
    Ok((public.as_bytes().to_vec(), private.as_bytes().to_vec()))
}

/// A name that is a part of a DNS name, and of a path.
pub(crate) fn check_name(name: &str) -> Result<(), KeyError> {
    let right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let label = |label: &str| !label.is_empty() && label.len() <= 63 && label.chars().all(right);
    if name.len() <= 253 && name.split('.').all(label) {
        Ok(())
    } else {
        Err(KeyError::Name(name.to_owned()))
    }
}

fn library(error: impl fmt::Display) -> KeyError {
    KeyError::Library(error.to_string())
}

const fn seconds(time: Timestamp) -> u64 {
    time.as_millis() / 1000
}

const fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds.saturating_mul(1000))
}
