//! The content under signatures of DKIM and ARC: fields of the header by name, and the hash of the body, both relaxed.

use mail_auth::common::crypto::{HashContext as _, HashImpl as _, Sha256};
use mail_auth::common::headers::{HeaderStream, Writable as _};
use mail_auth::dkim::Signature;
use vere_mime::{Field, Fields, fields, header_len};

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

/// The content of a message under a signature.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// The names of the fields, in the order of the tag `h`.
    pub(crate) names: Vec<String>,
    /// The canonical fields in this order.
    pub(crate) header: Vec<u8>,
    /// SHA-256 of the canonical body.
    pub(crate) body_hash: Vec<u8>,
}

impl Content {
    /// Canonicalizes a message with CRLF lines; the body is hashed once. Fields named in `more` are covered beside the usual ones.
    pub(crate) fn of(message: &[u8], more: &[&str]) -> Self {
        let known = FIXED.iter().chain(&PRESENT).chain(more);
        let mut known: Vec<_> = known.map(|name| (*name, false)).collect();
        for field in fields(message) {
            for (name, is_present) in &mut known {
                *is_present |= field.is(name);
            }
        }
        let wanted = known.iter().enumerate();
        let wanted = wanted.filter(|(n, (_, is_present))| *n < FIXED.len() || *is_present);
        let template = Signature {
            h: wanted.map(|(_, (name, _))| (*name).to_owned()).collect(),
            ..Signature::default()
        };
        let (_, canonical, mut names, body) = template.canonicalize(Stream(fields(message)));
        // A name listed once more than present states that there is no further field of the name.
        let fixed = known.iter().take(FIXED.len());
        let again = fixed.filter(|(_, is_present)| *is_present);
        names.extend(again.map(|(name, _)| (*name).to_owned()));
        let mut header = Vec::with_capacity(2048);
        canonical.write(&mut header);
        let mut hasher = Sha256::hasher();
        body.write(&mut hasher);
        Self {
            names,
            header,
            body_hash: hasher.complete().as_ref().to_vec(),
        }
    }
}

/// The name of a field, and the value with folding and the final line end, all of them signed.
pub(crate) fn split<'a>(field: &Field<'a>) -> (&'a [u8], &'a [u8]) {
    let colon = field.raw.iter().position(|octet| *octet == b':');
    let value = colon.and_then(|colon| field.raw.get(colon + 1..));
    (field.name, value.unwrap_or_default())
}

/// The fields of a message in order, and then its body, read in place.
struct Stream<'a>(Fields<'a>);

impl<'a> HeaderStream<'a> for Stream<'a> {
    fn next_header(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.0.next().as_ref().map(split)
    }

    /// The octets behind the empty line, up to the last content; to be asked for once all fields are read. The relaxed form ends there, with a
    /// line end (RFC 6376 section 3.4.4), but the form of mail-auth keeps lines of blanks at the end, and no other verifier does.
    fn body(&mut self) -> &'a [u8] {
        let rest = self.0.rest();
        let body = &rest[header_len(rest)..];
        let is_content = |octet: &u8| !matches!(octet, b' ' | b'\t' | b'\r' | b'\n');
        let last = body.iter().rposition(is_content);
        &body[..last.map_or(0, |last| last + 1)]
    }
}
