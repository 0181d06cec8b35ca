//! Seals of ARC (RFC 8617 section 5.1) for a message on the way to another system, without the keys.
//!
//! A set has two signatures, and the second signature covers the first. [`MessageDraft::of`] gives the octets of the
//! ARC-Message-Signature, [`MessageDraft::signed`] takes the value and gives the octets of the ARC-Seal, and
//! [`SealDraft::signed`] gives the fields of the set, to stand above the header:
//!
//! ```text
//! ARC-Seal: i=2; a=rsa-sha256; cv=pass; ...                     over all sets, up to the own set
//! ARC-Message-Signature: i=2; a=rsa-sha256; ...                 over header and body, without the fields of ARC
//! ARC-Authentication-Results: i=2; mx.example.org; spf=pass ... the results of this system
//! ```
//!
//! Both are of RSA: verifiers of ARC know no other algorithm.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_auth::dkim::Canonicalization;
use vere_mime::{Field, fields};
use vere_units::Timestamp;

use crate::content::{Content, split};

/// The most sets of a message (RFC 8617 section 4.2.1): no verifier takes more.
pub const ARC_SETS_MAX: usize = 50;
/// Fields covered beside the fields under a signature of DKIM. Not covered: Received, results of authentication, marks of spam.
const MORE: [&str; 1] = ["DKIM-Signature"];
/// The fields of a set, in the order in which a seal covers them (RFC 8617 section 5.1.1).
const KINDS: [&str; 3] = [RESULTS, "ARC-Message-Signature", "ARC-Seal"];
const RESULTS: &str = "ARC-Authentication-Results";
/// Most octets of a line, if its words allow that (RFC 5322 section 2.1.1).
const LINE_OCTETS_MAX: usize = 78;

/// The chain of a message by the verification. A broken chain is not sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// The message has no set.
    None,
    /// All sets are valid.
    Valid,
}

/// The signer of a set.
#[derive(Debug, Clone, Copy)]
pub struct Sealer<'a> {
    /// The domain of the key.
    pub domain: &'a str,
    /// The selector of an RSA key.
    pub selector: &'a str,
    /// The time of the set.
    pub now: Timestamp,
    /// Most octets to be signed by a key.
    pub octets_max: usize,
}

/// Why a message gets no set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotSealable {
    /// The fields of ARC are no chain of the given kind.
    #[error("the fields of ARC do not match the result of the chain")]
    Chain,
    /// The message has the most sets.
    #[error("{ARC_SETS_MAX} sets of ARC")]
    Full,
    /// The results are no field Authentication-Results.
    #[error("results of authentication that are no field")]
    Results,
    /// The octets to sign are too many for a signer.
    #[error("{0} octets of header to sign")]
    TooLarge(usize),
}

/// A set without signatures.
#[derive(Debug, Clone)]
pub struct MessageDraft {
    set: Set,
    content: Content,
    octets: Vec<u8>,
}

/// A set without its seal.
#[derive(Debug, Clone)]
pub struct SealDraft {
    set: Set,
    message: Vec<u8>,
    octets: Vec<u8>,
}

/// The statements of a set.
#[derive(Debug, Clone)]
struct Set {
    instance: usize,
    domain: String,
    selector: String,
    seconds: u64,
    octets_max: usize,
    /// The canonical fields of the earlier sets.
    earlier: Vec<u8>,
    /// The field ARC-Authentication-Results.
    results: Vec<u8>,
}

impl MessageDraft {
    /// Drafts the next set of a message with CRLF lines and a verified chain. `results` is the field Authentication-Results of
    /// the verification, with the line end.
    ///
    /// # Errors
    /// The message can have no further set.
    pub fn of(
        message: &[u8],
        chain: Chain,
        results: &[u8],
        sealer: Sealer<'_>,
    ) -> Result<Self, NotSealable> {
        let (sets, earlier) = earlier(message)?;
        if (sets == 0) != (chain == Chain::None) {
            return Err(NotSealable::Chain);
        }
        if sets >= ARC_SETS_MAX {
            return Err(NotSealable::Full);
        }
        let instance = sets.saturating_add(1);
        let set = Set {
            instance,
            domain: sealer.domain.to_owned(),
            selector: sealer.selector.to_owned(),
            seconds: sealer.now.as_millis() / 1_000,
            octets_max: sealer.octets_max,
            earlier,
            results: results_field(instance, results)?,
        };
        let content = Content::of(message, &MORE);
        let octets = set.signable(&content.header, &set.message_field(&content, ""))?;
        Ok(Self {
            set,
            content,
            octets,
        })
    }

    /// The octets of the message signature, for the key.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Puts the value of the message signature in, and drafts the seal.
    ///
    /// # Errors
    /// The sets have too many octets.
    pub fn signed(self, value: &[u8]) -> Result<SealDraft, NotSealable> {
        let Self { set, content, .. } = self;
        let message = set.message_field(&content, &STANDARD.encode(value));
        let mut covered = set.earlier.clone();
        canonical(&set.results, &mut covered);
        canonical(&message, &mut covered);
        let octets = set.signable(&covered, &set.seal_field(""))?;
        Ok(SealDraft {
            set,
            message,
            octets,
        })
    }
}

impl SealDraft {
    /// The octets of the seal, for the key.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Puts the value of the seal in, and returns the fields of the set, with CRLF lines, the seal first.
    #[must_use]
    pub fn signed(self, value: &[u8]) -> Vec<u8> {
        let seal = self.set.seal_field(&STANDARD.encode(value));
        [seal, self.message, self.set.results].concat()
    }
}

impl Set {
    /// The octets for a key: canonical fields, and the signature's own field without value and line end.
    fn signable(&self, covered: &[u8], own: &[u8]) -> Result<Vec<u8>, NotSealable> {
        let mut octets = covered.to_vec();
        canonical(own, &mut octets);
        octets.truncate(octets.len().saturating_sub(b"\r\n".len()));
        match octets.len() > self.octets_max {
            true => Err(NotSealable::TooLarge(octets.len())),
            false => Ok(octets),
        }
    }

    fn message_field(&self, content: &Content, value: &str) -> Vec<u8> {
        let Self {
            instance,
            domain,
            selector,
            seconds,
            ..
        } = self;
        let mut text = format!(
            "ARC-Message-Signature: i={instance}; a=rsa-sha256; c=relaxed/relaxed;\r\n\
             \td={domain};\r\n\ts={selector}; t={seconds};\r\n\th="
        );
        let mut line = "\th=".len();
        for (n, name) in content.names.iter().enumerate() {
            if n > 0 {
                text.push(':');
                line = line.saturating_add(1);
            }
            if line.saturating_add(name.len()) >= LINE_OCTETS_MAX {
                text.push_str("\r\n\t");
                line = 1;
            }
            text.push_str(name);
            line = line.saturating_add(name.len());
        }
        let hash = STANDARD.encode(&content.body_hash);
        text.push_str(&format!(";\r\n\tbh={hash};\r\n"));
        with_value(text, value)
    }

    fn seal_field(&self, value: &str) -> Vec<u8> {
        let Self {
            instance,
            domain,
            selector,
            seconds,
            ..
        } = self;
        let validation = if *instance == 1 { "none" } else { "pass" };
        let text = format!(
            "ARC-Seal: i={instance}; a=rsa-sha256; cv={validation}; t={seconds};\r\n\
             \td={domain};\r\n\ts={selector};\r\n"
        );
        with_value(text, value)
    }
}

/// Ends a field by the tag `b` in base 64, in lines.
fn with_value(mut text: String, value: &str) -> Vec<u8> {
    text.push_str("\tb=");
    let mut line = "\tb=".len();
    for character in value.chars() {
        if line >= LINE_OCTETS_MAX {
            text.push_str("\r\n\t");
            line = 1;
        }
        text.push(character);
        line = line.saturating_add(1);
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// The field with the results of this system, from the field Authentication-Results.
fn results_field(instance: usize, results: &[u8]) -> Result<Vec<u8>, NotSealable> {
    let field = fields(results).next().ok_or(NotSealable::Results)?;
    let text = field.value.trim_ascii_start();
    let is_printable = |octet: &u8| matches!(octet, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    if field.raw.len() != results.len()
        || !field.is("Authentication-Results")
        || !text.iter().all(is_printable)
        || text.is_empty()
    {
        return Err(NotSealable::Results);
    }
    let name = format!("{RESULTS}: i={instance}; ");
    Ok([name.as_bytes(), text, b"\r\n"].concat())
}

/// Returns the number of sets of a message, and the canonical fields in the order of a seal.
fn earlier(message: &[u8]) -> Result<(usize, Vec<u8>), NotSealable> {
    let mut sets: BTreeMap<usize, [Option<&[u8]>; 3]> = BTreeMap::new();
    for field in fields(message) {
        let Some(kind) = KINDS.iter().position(|name| field.is(name)) else {
            continue;
        };
        let instance = instance(&field).ok_or(NotSealable::Chain)?;
        let set = sets.entry(instance).or_default();
        let place = set.get_mut(kind).ok_or(NotSealable::Chain)?;
        if place.replace(field.raw).is_some() {
            return Err(NotSealable::Chain);
        }
    }
    let mut octets = Vec::new();
    for (expected, (instance, set)) in (1..).zip(&sets) {
        if *instance != expected {
            return Err(NotSealable::Chain);
        }
        for field in set {
            canonical(field.ok_or(NotSealable::Chain)?, &mut octets);
        }
    }
    Ok((sets.len(), octets))
}

/// The number of a field's set: the tag `i`, at the beginning of a field without a list of tags.
fn instance(field: &Field<'_>) -> Option<usize> {
    let most = if field.is(RESULTS) { 1 } else { usize::MAX };
    let mut tags = field.value.split(|octet| *octet == b';').take(most);
    let digits = tags.find_map(|tag| {
        let rest = tag.trim_ascii().strip_prefix(b"i")?;
        rest.trim_ascii_start().strip_prefix(b"=")
    })?;
    let text = std::str::from_utf8(digits.trim_ascii()).ok()?;
    let is_number =
        (1..=2).contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Appends the canonical form of a field, with its line end.
fn canonical(raw: &[u8], to: &mut Vec<u8>) {
    let field = Field::of(raw);
    Canonicalization::Relaxed.canonicalize_headers(std::iter::once(split(&field)), to);
    // The last field of a header without an end has no line end, until the message leaves.
    if !raw.ends_with(b"\n") {
        to.extend_from_slice(b"\r\n");
    }
}
