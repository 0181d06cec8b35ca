//! The half of a signature that needs the message: the octets to sign, and the header field around the
//! signature.

use mail_auth::common::crypto::Algorithm;
use mail_auth::dkim::Signature;
use vere_mime::fields;
use vere_units::Timestamp;

use crate::content::Content;
use crate::key::KeyAlgorithm;

/// Why a message cannot be signed; the author's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSignable {
    /// The message has no From field, which every signature must cover (RFC 6376 section 5.4).
    #[error("no From field")]
    NoFrom,
    /// The message has several From fields, so that the author shown to readers is unknown (RFC 5322 section
    /// 3.6 allows one).
    #[error("several From fields")]
    SeveralFrom,
    /// The fields to sign are too many or too large for a signer.
    #[error("{0} octets of header to sign")]
    TooLarge(usize),
}

/// A signature without its value.
#[derive(Debug, Clone)]
pub struct Draft {
    signature: Signature,
    octets: Vec<u8>,
}

impl Draft {
    /// The octets to sign.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// The algorithm of the signature.
    #[must_use]
    pub fn algorithm(&self) -> KeyAlgorithm {
        match self.signature.a {
            Algorithm::Ed25519Sha256 => KeyAlgorithm::Ed25519Sha256,
            Algorithm::RsaSha256 | Algorithm::RsaSha1 => KeyAlgorithm::RsaSha256,
        }
    }

    /// The selector of the key.
    #[must_use]
    pub fn selector(&self) -> &str {
        &self.signature.s
    }

    /// The header field with the signature value from the key, folded, with CRLF at the end.
    #[must_use]
    pub fn field(mut self, value: Vec<u8>) -> Vec<u8> {
        self.signature.b = value;
        let mut field = Vec::with_capacity(1024);
        self.signature.write(&mut field, true);
        field
    }
}

/// Drafts a signature for each key, relaxed in header and body. The message has CRLF lines; the body is hashed
/// once. At most `octets_max` octets are to be signed by a key.
///
/// # Errors
/// The message cannot be signed.
pub fn drafts<'a>(
    message: &[u8],
    domain: &str,
    keys: impl IntoIterator<Item = (KeyAlgorithm, &'a str)>,
    now: Timestamp,
    octets_max: usize,
) -> Result<Vec<Draft>, NotSignable> {
    match fields(message).filter(|field| field.is("From")).count() {
        0 => return Err(NotSignable::NoFrom),
        1 => {}
        _ => return Err(NotSignable::SeveralFrom),
    }
    let content = Content::of(message, &[]);
    let mut drafts = Vec::new();
    for (algorithm, selector) in keys {
        let signature = Signature {
            v: 1,
            a: match algorithm {
                KeyAlgorithm::RsaSha256 => Algorithm::RsaSha256,
                KeyAlgorithm::Ed25519Sha256 => Algorithm::Ed25519Sha256,
            },
            d: domain.to_owned(),
            s: selector.to_owned(),
            t: now.as_millis() / 1000,
            bh: content.body_hash.clone(),
            h: content.names.clone(),
            ..Signature::default()
        };
        let mut octets = content.header.clone();
        signature.write(&mut octets, false);
        if octets.len() > octets_max {
            return Err(NotSignable::TooLarge(octets.len()));
        }
        drafts.push(Draft { signature, octets });
    }
    Ok(drafts)
}
