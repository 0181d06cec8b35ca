//! The signer protocol, version 1: frames between a gateway or a front and the role with the private keys.
//!
//! The protocol is small on purpose: the signer parses no other input from outside, so input refused by
//! this code never reaches a key. A gateway asks for the keys that sign for a domain now
//! ([`Request::Keys`]), and requests the signature of one key over given octets ([`Request::Sign`]).
//! Requests may be pipelined; an answer carries the number of its request. Lengths are checked before
//! memory is taken.
//!
//! The front of port 25 asks for the certificates that it shows to clients ([`Request::Certificate`]), in turn, and for the
//! signatures of handshakes ([`Request::Handshake`]).
//!
//! The signer reaches no name server: a gateway asks for a key that waits for its record ([`Request::Waiting`]), looks the
//! record up, and says when the DNS has it ([`Request::Seen`]).
//!
//! Every frame, little endian; `str` is a u8 length and that many octets of ASCII:
//!
//! ```text
//! 0  u32  octets behind this field, at least 10 and at most FRAME_OCTETS_MAX
//! 4  u8   version = 1
//! 5  u8   kind
//! 6  u64  number of the request
//! 14      by kind:
//!    1 KEYS       str domain
//!    2 SIGN       u8 algorithm, str domain, str selector, octets to sign (the rest)
//!    3 CERTIFICATE  u16 index
//!    4 HANDSHAKE  u16 scheme, 32 octets fingerprint, octets to sign (the rest)
//!    5 WAITING    empty
//!    6 SEEN       str domain, str selector
//!    129 KEYS     u32 how long this holds in ms, u8 count, each: u8 algorithm, str selector
//!    130 SIGNED   the signature (the rest)
//!    131 CERTIFICATE  u64 revision, u16 number of certificates, and unless the index is beyond them:
//!                 str server name (empty: for clients that ask for no known name), 32 octets fingerprint,
//!                 u8 count, u16 scheme each; u8 count, each: u32 length and that many octets of DER,
//!                 the server's own certificate first
//!    132 WAITING  u32 how many keys wait, u32 ms until a key is due, and unless none is due now:
//!                 str domain, str selector, u32 how often the record was looked up before, text of the record (the rest)
//!    133 ACTIVATED  empty: the key waits for no record any more
//!    255 REFUSED  u8 reason
//! algorithm: 1 rsa-sha256 (RFC 6376 section 3.3.1), 2 ed25519-sha256 (RFC 8463)
//! reason: 1 no such key, 2 not understood, 3 the signature failed
//! scheme: a SignatureScheme (RFC 8446 section 4.2.3); fingerprint: SHA-256 of the server's own certificate in DER
//! ```
//!
//! ```
//! use vere_signwire::{Request, Frame};
//!
//! let mut octets = Vec::new();
//! Request::Keys { domain: "example.org" }.encode(7, &mut octets);
//! let frame = Frame::read(&octets)?.expect("a whole frame");
//! assert_eq!(frame.number, 7);
//! assert_eq!(Request::decode(&frame)?, Request::Keys { domain: "example.org" });
//! # Ok::<(), vere_signwire::WireError>(())
//! ```
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod certificate;
mod content;
mod error;
#[cfg(test)]
mod tests;
mod waiting;

pub use certificate::{CHAIN_MAX, Certificate, Fingerprint, SCHEMES_MAX};
use content::{Content, text};
pub use error::WireError;
pub use waiting::{RECORD_OCTETS_MAX, WaitingKey};

pub use error::VERSION;
/// The most octets of a frame behind the length: enough for the largest signed header.
pub const FRAME_OCTETS_MAX: usize = 1 << 20;
/// The most octets to sign.
pub const SIGN_OCTETS_MAX: usize = FRAME_OCTETS_MAX - 1024;
/// The most keys in one answer: more signatures only lengthen a message.
pub const KEYS_MAX: usize = 16;

const LENGTH_OCTETS: usize = 4;
const HEAD_OCTETS: usize = 10;

const KEYS: u8 = 1;
const SIGN: u8 = 2;
const CERTIFICATE: u8 = 3;
const HANDSHAKE: u8 = 4;
const WAITING: u8 = 5;
const SEEN: u8 = 6;
const KEYS_ANSWER: u8 = 129;
const SIGNED: u8 = 130;
const CERTIFICATE_ANSWER: u8 = 131;
const WAITING_ANSWER: u8 = 132;
const ACTIVATED: u8 = 133;
const REFUSED: u8 = 255;

/// How octets are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// PKCS #1 v1.5 with SHA-256.
    RsaSha256,
    /// Ed25519 of the SHA-256 hash.
    Ed25519Sha256,
}

impl Algorithm {
    const fn code(self) -> u8 {
        match self {
            Self::RsaSha256 => 1,
            Self::Ed25519Sha256 => 2,
        }
    }

    const fn of(code: u8) -> Result<Self, WireError> {
        match code {
            1 => Ok(Self::RsaSha256),
            2 => Ok(Self::Ed25519Sha256),
            _ => Err(WireError::Content),
        }
    }
}

/// A whole frame with unparsed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of the request.
    pub number: u64,
    kind: u8,
    content: &'a [u8],
    /// Octets of the frame, including the length.
    pub octets: usize,
}

impl<'a> Frame<'a> {
    /// Reads the first frame of the octets; `None` while the frame is incomplete.
    ///
    /// # Errors
    /// [`WireError`] for a frame that is too long, too short or of another version.
    pub fn read(octets: &'a [u8]) -> Result<Option<Self>, WireError> {
        let Some(length) = octets.first_chunk::<LENGTH_OCTETS>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if !(HEAD_OCTETS..=FRAME_OCTETS_MAX).contains(&length) {
            return Err(WireError::Length(length));
        }
        let whole = length.saturating_add(LENGTH_OCTETS);
        let Some(rest) = octets.get(LENGTH_OCTETS..whole) else {
            return Ok(None);
        };
        let mut content = Content(rest);
        let version = content.octet()?;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        let kind = content.octet()?;
        let number = u64::from_le_bytes(content.array()?);
        Ok(Some(Self {
            number,
            kind,
            content: content.0,
            octets: whole,
        }))
    }
}

/// A request of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Asks for the keys that sign for this domain now.
    Keys {
        /// The domain in lower case.
        domain: &'a str,
    },
    /// Sign these octets.
    Sign {
        /// How.
        algorithm: Algorithm,
        /// Whose key.
        domain: &'a str,
        /// The selector of the key within the domain.
        selector: &'a str,
        /// The octets to sign, at most [`SIGN_OCTETS_MAX`].
        octets: &'a [u8],
    },
    /// Asks for a certificate that clients may be shown.
    Certificate {
        /// From 0 on.
        index: u16,
    },
    /// Sign these octets of a TLS handshake.
    Handshake {
        /// The scheme of the signature (RFC 8446 section 4.2.3).
        scheme: u16,
        /// The certificate whose key signs.
        certificate: Fingerprint,
        /// The octets to sign, at most [`SIGN_OCTETS_MAX`].
        octets: &'a [u8],
    },
    /// Asks for a waiting key whose record is to be looked up now.
    Waiting,
    /// The DNS has the record of this key.
    Seen {
        /// Whose key.
        domain: &'a str,
        /// The selector of the key within the domain.
        selector: &'a str,
    },
}

impl<'a> Request<'a> {
    /// Appends the frame. A domain or selector of more than 255 octets is cut, and then names no key.
    pub fn encode(&self, number: u64, out: &mut Vec<u8>) {
        match self {
            Self::Keys { domain } => frame(out, KEYS, number, |out| text(out, domain)),
            Self::Sign {
                algorithm,
                domain,
                selector,
                octets,
            } => frame(out, SIGN, number, |out| {
                out.push(algorithm.code());
                text(out, domain);
                text(out, selector);
                out.extend_from_slice(octets);
            }),
            Self::Certificate { index } => frame(out, CERTIFICATE, number, |out| {
                out.extend_from_slice(&index.to_le_bytes());
            }),
            Self::Handshake {
                scheme,
                certificate,
                octets,
            } => frame(out, HANDSHAKE, number, |out| {
                out.extend_from_slice(&scheme.to_le_bytes());
                out.extend_from_slice(certificate);
                out.extend_from_slice(octets);
            }),
            Self::Waiting => frame(out, WAITING, number, |_| {}),
            Self::Seen { domain, selector } => frame(out, SEEN, number, |out| {
                text(out, domain);
                text(out, selector);
            }),
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// [`WireError`] for an unknown or malformed request.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, WireError> {
        let mut content = Content(frame.content);
        match frame.kind {
            KEYS => {
                let domain = content.text()?;
                content.end()?;
                Ok(Self::Keys { domain })
            }
            SIGN => Ok(Self::Sign {
                algorithm: Algorithm::of(content.octet()?)?,
                domain: content.text()?,
                selector: content.text()?,
                octets: content.0,
            }),
            CERTIFICATE => {
                let index = u16::from_le_bytes(content.array()?);
                content.end()?;
                Ok(Self::Certificate { index })
            }
            HANDSHAKE => Ok(Self::Handshake {
                scheme: u16::from_le_bytes(content.array()?),
                certificate: content.array()?,
                octets: content.0,
            }),
            WAITING => {
                content.end()?;
                Ok(Self::Waiting)
            }
            SEEN => {
                let (domain, selector) = (content.text()?, content.text()?);
                content.end()?;
                Ok(Self::Seen { domain, selector })
            }
            other => Err(WireError::Kind(other)),
        }
    }
}

/// The reason for a signer's refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The key does not exist, or does not sign at this time.
    NoKey,
    /// The request is not understood.
    NotUnderstood,
    /// The signature could not be made.
    Failed,
}

impl Reason {
    const fn code(self) -> u8 {
        match self {
            Self::NoKey => 1,
            Self::NotUnderstood => 2,
            Self::Failed => 3,
        }
    }
}

/// A signing key of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveKey {
    /// How it signs.
    pub algorithm: Algorithm,
    /// The selector of the public key: `SELECTOR._domainkey.DOMAIN`.
    pub selector: String,
}

/// The answer of a signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The signing keys, at most [`KEYS_MAX`]; an empty list means that the signer has no keys for the
    /// domain.
    Keys {
        /// Validity of the answer in milliseconds.
        holds_ms: u32,
        /// The keys.
        keys: Vec<ActiveKey>,
    },
    /// The signature.
    Signed(Vec<u8>),
    /// A certificate.
    Certificate {
        /// Another one for every other list of certificates.
        revision: u64,
        /// The length of the list.
        count: u16,
        /// None beyond the list.
        certificate: Option<Certificate>,
    },
    /// Keys that wait for their records.
    Waiting {
        /// How many keys wait.
        count: u32,
        /// Time until a record is to be looked up, in milliseconds; 0 with a key.
        pause_ms: u32,
        /// The key whose record is to be looked up now.
        key: Option<WaitingKey>,
    },
    /// The key waits for no record any more.
    Activated,
    /// Not done.
    Refused(Reason),
}

impl Answer {
    /// Appends the frame. Keys beyond [`KEYS_MAX`] are left out.
    pub fn encode(&self, number: u64, out: &mut Vec<u8>) {
        match self {
            Self::Keys { holds_ms, keys } => frame(out, KEYS_ANSWER, number, |out| {
                let count = keys.len().min(KEYS_MAX);
                out.extend_from_slice(&holds_ms.to_le_bytes());
                out.push(u8::try_from(count).unwrap_or(u8::MAX));
                for key in keys.iter().take(count) {
                    out.push(key.algorithm.code());
                    text(out, &key.selector);
                }
            }),
            Self::Signed(signature) => {
                frame(out, SIGNED, number, |out| out.extend_from_slice(signature));
            }
            Self::Certificate {
                revision,
                count,
                certificate,
            } => frame(out, CERTIFICATE_ANSWER, number, |out| {
                out.extend_from_slice(&revision.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                if let Some(certificate) = certificate {
                    certificate.encode(out);
                }
            }),
            Self::Waiting {
                count,
                pause_ms,
                key,
            } => frame(out, WAITING_ANSWER, number, |out| {
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&pause_ms.to_le_bytes());
                if let Some(key) = key {
                    key.encode(out);
                }
            }),
            Self::Activated => frame(out, ACTIVATED, number, |_| {}),
            Self::Refused(reason) => frame(out, REFUSED, number, |out| out.push(reason.code())),
        }
    }

    /// Reads an answer.
    ///
    /// # Errors
    /// [`WireError`] for an unknown or malformed answer.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, WireError> {
        let mut content = Content(frame.content);
        match frame.kind {
            KEYS_ANSWER => {
                let holds_ms = u32::from_le_bytes(content.array()?);
                let count = content.octet()?;
                if usize::from(count) > KEYS_MAX {
                    return Err(WireError::Content);
                }
                let mut keys = Vec::with_capacity(usize::from(count));
                for _ in 0..count {
                    keys.push(ActiveKey {
                        algorithm: Algorithm::of(content.octet()?)?,
                        selector: content.text()?.to_owned(),
                    });
                }
                content.end()?;
                Ok(Self::Keys { holds_ms, keys })
            }
            SIGNED => Ok(Self::Signed(content.0.to_vec())),
            CERTIFICATE_ANSWER => {
                let revision = u64::from_le_bytes(content.array()?);
                let count = u16::from_le_bytes(content.array()?);
                let certificate = match content.0 {
                    [] => None,
                    _ => Some(Certificate::decode(&mut content)?),
                };
                content.end()?;
                Ok(Self::Certificate {
                    revision,
                    count,
                    certificate,
                })
            }
            WAITING_ANSWER => {
                let count = u32::from_le_bytes(content.array()?);
                let pause_ms = u32::from_le_bytes(content.array()?);
                let key = match content.0 {
                    [] => None,
                    _ => Some(WaitingKey::decode(&mut content)?),
                };
                Ok(Self::Waiting {
                    count,
                    pause_ms,
                    key,
                })
            }
            ACTIVATED => {
                content.end()?;
                Ok(Self::Activated)
            }
            REFUSED => {
                let code = content.octet()?;
                content.end()?;
                let reasons = [Reason::NoKey, Reason::NotUnderstood, Reason::Failed];
                let reason = reasons.into_iter().find(|reason| reason.code() == code);
                reason.map(Self::Refused).ok_or(WireError::Content)
            }
            other => Err(WireError::Kind(other)),
        }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, number: u64, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_OCTETS]);
    out.extend_from_slice(&[VERSION, kind]);
    out.extend_from_slice(&number.to_le_bytes());
    content(out);
    let behind = out
        .len()
        .saturating_sub(start)
        .saturating_sub(LENGTH_OCTETS);
    // An oversized content gets an oversized length, and the reader refuses the frame.
    let length = u32::try_from(behind).unwrap_or(u32::MAX).to_le_bytes();
    if let Some(place) = out.get_mut(start..start.saturating_add(LENGTH_OCTETS)) {
        place.copy_from_slice(&length);
    }
}
