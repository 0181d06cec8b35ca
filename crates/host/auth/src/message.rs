//! A message as its signatures cover it: the header, and hashes of the body, which is not kept.

use std::collections::HashMap;

use vere_mime::{Field, addresses, unfold};

use crate::body::{Body, BodyHash};
use crate::canonical::Canonicalization;
use crate::chain::{Chain, Fields};
use crate::fault::Fault;
use crate::name;
use crate::preference::Chosen;
use crate::signature::{Claim, Content, Found, Kind};

/// Most octets of a header that is checked. Postfix stores 100 KiB, Exim 1 MiB; the header of a message of a list with 20 sets of ARC has 60 KiB.
pub const HEADER_OCTETS_MAX: usize = 256 * 1024;
/// Most hashes of a part of the body (tag `l`); each one costs as much as the hash of a whole body.
const LENGTHS_MAX: usize = 2;

/// The author of a message, by the field From.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Author {
    /// All addresses have this domain.
    Domain(String),
    /// The header is ambiguous, or has no domain of an author.
    Unclear(&'static str),
    /// The addresses have several domains, for which DMARC does not apply.
    Several,
}

impl Author {
    pub(crate) fn domain(&self) -> Option<&str> {
        match self {
            Self::Domain(domain) => Some(domain),
            Self::Unclear(_) | Self::Several => None,
        }
    }
}

/// A message whose body has been hashed.
#[derive(Debug, Clone)]
pub struct Message {
    pub(crate) header: Vec<u8>,
    pub(crate) author: Author,
    pub(crate) signatures: Vec<Found>,
    pub(crate) ignored: usize,
    pub(crate) chain: Chain,
    pub(crate) bodies: Vec<BodyHash>,
}

impl Message {
    /// Hashes a whole message.
    #[must_use]
    pub fn of(octets: &[u8]) -> Self {
        let mut hashing = Hashing::default();
        hashing.take(octets);
        hashing.finish()
    }
}

/// A message that comes in pieces of any length. At most [`HEADER_OCTETS_MAX`] octets are kept.
#[derive(Debug, Default)]
pub struct Hashing {
    /// The header, until the body begins.
    header: Vec<u8>,
    /// The begin of the first line of the header that is not known to be whole.
    line: usize,
    is_too_long: bool,
    body: Option<Hashed>,
}

/// The part of a message behind the header.
#[derive(Debug)]
struct Hashed {
    message: Message,
    bodies: Vec<Body>,
}

impl Hashing {
    /// Takes the next octets of the message.
    pub fn take(&mut self, octets: &[u8]) {
        if let Some(hashed) = &mut self.body {
            hashed.take(octets);
            return;
        }
        if self.is_too_long {
            return;
        }
        let room = HEADER_OCTETS_MAX.saturating_sub(self.header.len());
        let (kept, behind) = octets.split_at_checked(room).unwrap_or((octets, &[]));
        self.header.extend_from_slice(kept);
        match end(&self.header, &mut self.line) {
            Some((end, begin)) => {
                let start = self.header.split_off(begin);
                self.header.truncate(end);
                let mut hashed = Hashed::of(std::mem::take(&mut self.header));
                hashed.take(&start);
                hashed.take(behind);
                self.body = Some(hashed);
            }
            None if !behind.is_empty() => {
                self.is_too_long = true;
                // Nothing of a header without end is checked.
                self.header = Vec::new();
            }
            None => {}
        }
    }

    /// Octets of the header in memory.
    #[must_use]
    pub const fn octets(&self) -> usize {
        match &self.body {
            Some(hashed) => hashed.message.header.capacity(),
            None => self.header.capacity(),
        }
    }

    /// Ends the message.
    #[must_use]
    pub fn finish(self) -> Message {
        match self.body {
            Some(hashed) => hashed.finish(),
            None if self.is_too_long => too_long(),
            None => Hashed::of(self.header).finish(),
        }
    }
}

/// Finds the empty line behind a header: where the header ends and the body begins.
fn end(octets: &[u8], line: &mut usize) -> Option<(usize, usize)> {
    loop {
        let rest = octets.get(*line..)?;
        match rest {
            [b'\n', ..] => return Some((*line, line.saturating_add(1))),
            [b'\r', b'\n', ..] => return Some((*line, line.saturating_add(2))),
            _ => *line = line.saturating_add(memchr::memchr(b'\n', rest)?.saturating_add(1)),
        }
    }
}

fn too_long() -> Message {
    let unchecked = Found {
        index: 0,
        claim: Claim::default(),
        signature: Err(Fault::HeaderTooLong),
    };
    Message {
        header: Vec::new(),
        author: Author::Unclear("header too long"),
        signatures: vec![unchecked],
        ignored: 0,
        chain: Chain::default(),
        bodies: Vec::new(),
    }
}

impl Hashed {
    fn of(header: Vec<u8>) -> Self {
        let author = author(&header);
        let mut chain = Fields::default();
        let mut chosen = Chosen::default();
        for (index, field) in vere_mime::fields(&header).enumerate() {
            match field.is("DKIM-Signature") {
                true => chosen.take(Found::of(index, field.value, Kind::Dkim), author.domain()),
                false => chain.take(index, &field),
            }
        }
        let mut message = Message {
            author,
            header,
            ignored: chosen.ignored,
            signatures: chosen.into_signatures(),
            chain: chain.chain(),
            bodies: Vec::new(),
        };
        let bodies = bodies(&mut message);
        message.signatures.sort_by_key(|found| found.index);
        Self { message, bodies }
    }

    fn take(&mut self, octets: &[u8]) {
        for body in &mut self.bodies {
            body.take(octets);
        }
    }

    fn finish(self) -> Message {
        let Self {
            mut message,
            bodies,
        } = self;
        message.bodies = bodies.into_iter().map(Body::finish).collect();
        message
    }
}

/// Begins each hash that a signature of the message needs, once. The signatures that count first have the first lengths.
fn bodies(message: &mut Message) -> Vec<Body> {
    let mut needed = HashMap::<(bool, Option<u64>), Canonicalization>::new();
    let signatures = message.signatures.iter_mut();
    for found in signatures.chain(message.chain.newest_message()) {
        let Ok(signature) = &found.signature else {
            continue;
        };
        let Some(Content {
            body_form, length, ..
        }) = signature.content
        else {
            continue;
        };
        let hash = (body_form == Canonicalization::Simple, length);
        let lengths = needed.keys().filter(|(_, length)| length.is_some()).count();
        if length.is_some() && lengths >= LENGTHS_MAX && !needed.contains_key(&hash) {
            found.signature = Err(Fault::TooManyLengths);
        } else {
            needed.insert(hash, body_form);
        }
    }
    let needed = needed.into_iter();
    needed
        .map(|((_, length), form)| Body::new(form, length))
        .collect()
}

/// Reads the author. Readers of mail disagree about headers that are no list of fields, so such a header has no author.
fn author(header: &[u8]) -> Author {
    if !is_list_of_fields(header) {
        return Author::Unclear("malformed header");
    }
    let mut from = vere_mime::fields(header).filter(|field| field.is("From"));
    let (Some(field), None) = (from.next(), from.next()) else {
        return Author::Unclear("not exactly one From field");
    };
    let mut domains = Vec::new();
    // The beginning and the end of a group have no domain (RFC 6854).
    let hosts = addresses(&unfold(field.value)).into_iter();
    for host in hosts.filter_map(|address| address.host) {
        match name::domain(&host) {
            Some(domain) => domains.push(domain),
            None => return Author::Unclear("malformed domain in From"),
        }
    }
    domains.sort_unstable();
    domains.dedup();
    match (domains.pop(), domains.is_empty()) {
        (Some(domain), true) => Author::Domain(domain),
        (Some(_), false) => Author::Several,
        (None, _) => Author::Unclear("no domain in From"),
    }
}

fn is_list_of_fields(header: &[u8]) -> bool {
    let ends = memchr::memchr2_iter(b'\r', b'\n', header);
    let mut octets = ends.map(|at| match header.get(at) {
        Some(b'\r') => header.get(at.saturating_add(1)) == Some(&b'\n'),
        _ => at.checked_sub(1).and_then(|before| header.get(before)) == Some(&b'\r'),
    });
    octets.all(|is_pair| is_pair)
        && memchr::memchr(0, header).is_none()
        && vere_mime::fields(header).all(|field: Field<'_>| field.is_named())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preference::SIGNATURES_MAX;

    fn domain(header: &str) -> Author {
        Message::of(header.as_bytes()).author
    }

    #[test]
    fn the_author_is_the_domain_of_one_from_field() {
        let of = |domain: &str| Author::Domain(domain.to_owned());
        let one = "not exactly one From field";
        for (header, expected) in [
            ("From: a@Example.org\r\n", of("example.org")),
            (
                "from : \"x@y.example\" <a@example.org>\r\n\r\nFrom: b@c.example",
                of("example.org"),
            ),
            (
                "From: a@example.org,\r\n b@EXAMPLE.org\r\n",
                of("example.org"),
            ),
            (
                "From: Group: a@example.org, b@example.org;\r\n",
                of("example.org"),
            ),
            (
                "From: a@b\u{fc}cher.example\r\n",
                of("xn--bcher-kva.example"),
            ),
            ("From: a@example.org, b@example.net\r\n", Author::Several),
            (
                "From: a@example.org\r\nFrom: b@example.org\r\n",
                Author::Unclear(one),
            ),
            (
                "From: a@example.org\r\nFROM\t: b@example.org\r\n",
                Author::Unclear(one),
            ),
            ("Subject: x\r\n", Author::Unclear(one)),
            ("", Author::Unclear(one)),
            ("From: Nobody:;\r\n", Author::Unclear("no domain in From")),
            ("From: a\r\n", Author::Unclear("malformed domain in From")),
            (
                "From: a@[192.0.2.1]\r\n",
                Author::Unclear("malformed domain in From"),
            ),
            (
                "From: a@b.example\r\nno field\r\n",
                Author::Unclear("malformed header"),
            ),
            (
                "X: y\nFrom: a@b.example\r\n",
                Author::Unclear("malformed header"),
            ),
            (
                "X: y\rFrom: a@b.example\r\n",
                Author::Unclear("malformed header"),
            ),
            (
                "X: \0\r\nFrom: a@b.example\r\n",
                Author::Unclear("malformed header"),
            ),
            (
                " x\r\nFrom: a@b.example\r\n",
                Author::Unclear("malformed header"),
            ),
        ] {
            assert_eq!(domain(header), expected, "{header:?}");
        }
    }

    #[test]
    fn a_long_header_is_not_checked_and_not_kept() {
        let mut hashing = Hashing::default();
        for _ in 0..100 {
            hashing.take(&b"DKIM-Signature: v=1\r\n".repeat(1_000));
        }
        assert!(hashing.header.len() <= HEADER_OCTETS_MAX);
        let message = hashing.finish();
        assert_eq!(message.author, Author::Unclear("header too long"));
        assert_eq!(message.signatures[0].signature, Err(Fault::HeaderTooLong));
        let message = Message::of(&b"DKIM-Signature: v=1\r\n".repeat(1_000));
        assert_eq!(
            (message.signatures.len(), message.ignored),
            (SIGNATURES_MAX, 990)
        );
    }

    #[test]
    fn hashes_of_parts_of_the_body_are_few() {
        let field = |length: u32| {
            format!(
                "DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=s; h=from; bh=YQ; b=YQ; l={length}\r\n"
            )
        };
        let header: String = (0..5).map(field).collect();
        let message = Message::of(format!("{header}{}\r\n", field(1)).as_bytes());
        assert_eq!(message.bodies.len(), LENGTHS_MAX);
        let refused = |found: &&Found| found.signature == Err(Fault::TooManyLengths);
        assert_eq!(message.signatures.iter().filter(refused).count(), 3);
    }
}
