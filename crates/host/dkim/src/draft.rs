//! The half of a signature that needs the message: the octets to sign, and the header field around the
//! signature.

use mail_auth::common::crypto::{Algorithm, HashContext as _, HashImpl as _, Sha256};
use mail_auth::common::headers::{HeaderStream, Writable as _};
use mail_auth::dkim::Signature;
use vere_mime::{Fields, fields, header_len};
use vere_units::Timestamp;

use crate::key::KeyAlgorithm;

/// Fields signed once more than present, so that a further field cannot be added later: fields shown to readers
/// or with an effect on the interpretation of the body.
const FIXED: [&str; 10] = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// Fields signed where present; mailing lists legitimately add some of these fields later (RFC 6376 section
/// 5.4.1).
const PRESENT: [&str; 13] = [
    "Sender",
    "In-Reply-To",
    "References",
    "Content-ID",
    "Content-Description",
    "List-Id",
    "List-Help",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "List-Subscribe",
    "List-Post",
    "List-Owner",
    "Auto-Submitted",
];

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
    let counts = FieldCounts::of(message);
    match counts.of_name("From") {
        0 => return Err(NotSignable::NoFrom),
        1 => {}
        _ => return Err(NotSignable::SeveralFrom),
    }
    let signed: Vec<String> = FIXED
        .iter()
        .chain(PRESENT.iter().filter(|name| counts.of_name(name) > 0))
        .map(|name| (*name).to_owned())
        .collect();
    let template = Signature {
        v: 1,
        d: domain.to_owned(),
        t: now.as_millis() / 1000,
        h: signed,
        ..Signature::default()
    };
    let (_, _, mut named, body) = template.canonicalize(Stream(fields(message)));
    // A name listed once more than present states that there is no further field of the name.
    named.extend(
        FIXED
            .iter()
            .filter(|name| counts.of_name(name) > 0)
            .map(|name| (*name).to_owned()),
    );
    let mut hasher = Sha256::hasher();
    body.write(&mut hasher);
    let body_hash = hasher.complete().as_ref().to_vec();
    let mut drafts = Vec::new();
    for (algorithm, selector) in keys {
        let signature = Signature {
            a: match algorithm {
                KeyAlgorithm::RsaSha256 => Algorithm::RsaSha256,
                KeyAlgorithm::Ed25519Sha256 => Algorithm::Ed25519Sha256,
            },
            s: selector.to_owned(),
            bh: body_hash.clone(),
            h: named.clone(),
            ..template.clone()
        };
        let (_, header, ..) = template.canonicalize(Stream(fields(message)));
        let mut octets = Vec::with_capacity(2048);
        header.write(&mut octets);
        signature.write(&mut octets, false);
        if octets.len() > octets_max {
            return Err(NotSignable::TooLarge(octets.len()));
        }
        drafts.push(Draft { signature, octets });
    }
    Ok(drafts)
}

/// The number of fields for each name that may be signed.
struct FieldCounts(Vec<(&'static str, usize)>);

impl FieldCounts {
    fn of(message: &[u8]) -> Self {
        let mut counts: Vec<_> = FIXED
            .iter()
            .chain(&PRESENT)
            .map(|name| (*name, 0))
            .collect();
        for field in fields(message) {
            for (known, count) in &mut counts {
                *count += usize::from(field.is(known));
            }
        }
        Self(counts)
    }

    fn of_name(&self, name: &str) -> usize {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or(0, |(_, count)| *count)
    }
}

/// The fields of a message in order, and then its body, read in place.
struct Stream<'a>(Fields<'a>);

impl<'a> HeaderStream<'a> for Stream<'a> {
    /// The name, and the value with folding and the final line end, which is signed too.
    fn next_header(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let field = self.0.next()?;
        let colon = field.raw.iter().position(|octet| *octet == b':');
        let value = colon.and_then(|colon| field.raw.get(colon + 1..));
        Some((field.name, value.unwrap_or_default()))
    }

    /// What is behind the empty line; to be asked for once all fields are read.
    fn body(&mut self) -> &'a [u8] {
        let rest = self.0.rest();
        &rest[header_len(rest)..]
    }
}
