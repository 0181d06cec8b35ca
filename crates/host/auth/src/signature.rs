//! The fields DKIM-Signature (RFC 6376 section 3.5), ARC-Message-Signature and ARC-Seal (RFC 8617 sections 4.1.2, 4.1.3).

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::canonical::Canonicalization;
use crate::fault::Fault;
use crate::name;
use crate::tags::Tags;

/// Most names of fields in a signature, with repetitions. Signers of today mention 60 at most.
const NAMES_MAX: usize = 500;
/// Most octets of an identity that are kept (RFC 5321 sections 4.5.3.1.1 and 4.5.3.1.2).
const IDENTITY_OCTETS_MAX: usize = 64 + 1 + 255;
/// Characters of a signature that tell signatures of one domain apart (RFC 6008 section 4).
const VALUE_CHARS: usize = 8;

/// Base 64 as signers write it: some leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Decodes base 64 without white space.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// A field with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// DKIM-Signature.
    Dkim,
    /// ARC-Message-Signature.
    ArcMessage,
    /// ARC-Seal.
    ArcSeal,
}

/// The algorithm of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA with SHA-256 (RFC 6376 section 3.3.2).
    RsaSha256,
    /// Ed25519 with SHA-256 (RFC 8463).
    Ed25519Sha256,
    /// RSA with SHA-1, which is not accepted (RFC 8301 section 3.1).
    RsaSha1,
}

impl Algorithm {
    fn of(text: &[u8]) -> Option<Self> {
        match text.to_ascii_lowercase().as_slice() {
            b"rsa-sha256" => Some(Self::RsaSha256),
            b"ed25519-sha256" => Some(Self::Ed25519Sha256),
            b"rsa-sha1" => Some(Self::RsaSha1),
            _ => None,
        }
    }

    /// Returns the word of the tag `a`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RsaSha256 => "rsa-sha256",
            Self::Ed25519Sha256 => "ed25519-sha256",
            Self::RsaSha1 => "rsa-sha1",
        }
    }
}

/// The statements of a field that are reported whether or not the signature is valid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Claim {
    pub(crate) domain: Option<String>,
    pub(crate) selector: Option<String>,
    pub(crate) identity: Option<String>,
    pub(crate) algorithm: Option<Algorithm>,
    /// The first characters of the value.
    pub(crate) value: String,
}

/// A field, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The number of the field in the header.
    pub(crate) index: usize,
    pub(crate) claim: Claim,
    pub(crate) signature: Result<Signature, Fault>,
}

/// The parts of a signature that every kind has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) algorithm: Algorithm,
    pub(crate) domain: String,
    pub(crate) selector: String,
    /// The domain of the identity, where it is another one.
    pub(crate) identity_domain: Option<String>,
    pub(crate) value: Vec<u8>,
    /// The place of the value in the field's value.
    pub(crate) place: Range<usize>,
    pub(crate) signed_at: Option<u64>,
    pub(crate) expires: Option<u64>,
    /// The signed fields and the signed body; a seal has none.
    pub(crate) content: Option<Content>,
}

/// The part of a message that a signature covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) header_form: Canonicalization,
    pub(crate) body_form: Canonicalization,
    /// Names of fields in lower case.
    pub(crate) names: Vec<String>,
    pub(crate) body_hash: Vec<u8>,
    /// Octets of the canonical body that are covered.
    pub(crate) length: Option<u64>,
}

impl Found {
    /// Parses the value of a field.
    pub(crate) fn of(index: usize, value: &[u8], kind: Kind) -> Self {
        let Ok(tags) = Tags::of(value) else {
            let claim = Claim::default();
            let signature = Err(Fault::Syntax);
            return Self {
                index,
                claim,
                signature,
            };
        };
        let claim = claim(&tags);
        let signature = signature(&tags, kind, &claim);
        Self {
            index,
            claim,
            signature,
        }
    }

    /// Returns the name of the record with the key (RFC 6376 section 3.6.2.1).
    pub(crate) fn key_name(&self) -> Option<String> {
        self.signature.as_ref().ok().map(Signature::key_name)
    }
}

impl Signature {
    pub(crate) fn key_name(&self) -> String {
        format!("{}._domainkey.{}", self.selector, self.domain)
    }
}

fn claim(tags: &Tags<'_>) -> Claim {
    let identity = tags
        .value("i")
        .and_then(|text| std::str::from_utf8(text).ok());
    let is_short = |text: &&str| text.len() <= IDENTITY_OCTETS_MAX;
    let value = tags.compact("b").unwrap_or_default();
    let is_base64 =
        |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/' | b'=');
    let value = value.into_iter().take(VALUE_CHARS).filter(is_base64);
    Claim {
        domain: tags.value("d").and_then(name::domain),
        selector: tags.value("s").and_then(name::domain),
        identity: identity.filter(is_short).map(str::to_owned),
        algorithm: tags.value("a").and_then(Algorithm::of),
        value: value.map(char::from).collect(),
    }
}

fn signature(tags: &Tags<'_>, kind: Kind, claim: &Claim) -> Result<Signature, Fault> {
    if kind == Kind::Dkim && tags.value("v").ok_or(Fault::Missing("v"))? != b"1" {
        return Err(Fault::Version);
    }
    for name in ["a", "b", "d", "s"] {
        tags.value(name).ok_or(Fault::Missing(name))?;
    }
    let algorithm = claim.algorithm.ok_or(Fault::Algorithm)?;
    let content = match kind {
        Kind::ArcSeal => None,
        Kind::Dkim | Kind::ArcMessage => Some(content(tags, kind)?),
    };
    let (Some(domain), Some(selector)) = (claim.domain.clone(), claim.selector.clone()) else {
        return Err(Fault::Name);
    };
    let identity_domain = match kind {
        Kind::Dkim => identity_domain(tags, &domain)?,
        // The tag `i` of ARC is a number.
        Kind::ArcMessage | Kind::ArcSeal => None,
    };
    let signature = Signature {
        algorithm,
        identity_domain,
        value: tags
            .compact("b")
            .and_then(|text| decode(&text))
            .ok_or(Fault::Syntax)?,
        place: tags.place("b").ok_or(Fault::Syntax)?,
        signed_at: number(tags, "t")?,
        expires: number(tags, "x")?,
        content,
        domain,
        selector,
    };
    match name::is_name(&signature.key_name()) {
        true => Ok(signature),
        false => Err(Fault::Name),
    }
}

fn content(tags: &Tags<'_>, kind: Kind) -> Result<Content, Fault> {
    let body_hash = tags.compact("bh").ok_or(Fault::Missing("bh"))?;
    let names = tags
        .compact("h")
        .ok_or(Fault::Missing("h"))?
        .to_ascii_lowercase();
    let names: Vec<_> = names
        .split(|octet| *octet == b':')
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    if names.len() > NAMES_MAX {
        return Err(Fault::Syntax);
    }
    let covers = |wanted: &str| names.iter().any(|name| name == wanted);
    match kind {
        Kind::Dkim if !covers("from") => return Err(Fault::FromNotSigned),
        Kind::ArcMessage if covers("arc-seal") => return Err(Fault::SealSigned),
        _ => {}
    }
    let is_dns = |method: &[u8]| method.eq_ignore_ascii_case(b"dns/txt");
    let methods = tags.compact("q").unwrap_or_else(|| b"dns/txt".to_vec());
    if !methods.split(|octet| *octet == b':').any(is_dns) {
        return Err(Fault::Method);
    }
    let (header_form, body_form) = forms(tags)?;
    Ok(Content {
        header_form,
        body_form,
        names,
        body_hash: decode(&body_hash).ok_or(Fault::Syntax)?,
        length: number(tags, "l")?,
    })
}

fn forms(tags: &Tags<'_>) -> Result<(Canonicalization, Canonicalization), Fault> {
    let form = |text: &[u8]| match text.to_ascii_lowercase().as_slice() {
        b"simple" => Ok(Canonicalization::Simple),
        b"relaxed" => Ok(Canonicalization::Relaxed),
        _ => Err(Fault::Canonicalization),
    };
    let text = tags.value("c").unwrap_or(b"simple/simple");
    let mut forms = text.splitn(2, |octet| *octet == b'/');
    let header = forms.next().map_or(Ok(Canonicalization::Simple), form)?;
    // A body without a form of its own has the simple one.
    let body = forms.next().map_or(Ok(Canonicalization::Simple), form)?;
    Ok((header, body))
}

/// Returns the domain of the identity, if that is not the domain itself.
fn identity_domain(tags: &Tags<'_>, domain: &str) -> Result<Option<String>, Fault> {
    let Some(identity) = tags.value("i") else {
        return Ok(None);
    };
    let at = memchr::memrchr(b'@', identity).ok_or(Fault::Syntax)?;
    let behind = identity.get(at.saturating_add(1)..).unwrap_or_default();
    let of_identity = name::domain(behind).ok_or(Fault::Identity)?;
    match name::is_within(&of_identity, domain) {
        true => Ok(Some(of_identity).filter(|name| name != domain)),
        false => Err(Fault::Identity),
    }
}

/// Reads an unsigned number of 76 digits at most (RFC 6376 section 3.5); a number that is too large for this machine is the largest one.
fn number(tags: &Tags<'_>, name: &str) -> Result<Option<u64>, Fault> {
    let Some(digits) = tags.value(name) else {
        return Ok(None);
    };
    if !(1..=76).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Syntax);
    }
    let add = |number: u64, digit: &u8| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit.saturating_sub(b'0')))
    };
    Ok(Some(digits.iter().fold(0, add)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "v=1; a=rsa-sha256; d=Example.org; s=sel; h=From:To; bh=YQ==; b=Y Q==";

    fn fault(text: &str, kind: Kind) -> Option<Fault> {
        Found::of(0, text.as_bytes(), kind).signature.err()
    }

    #[test]
    fn a_signature_has_the_tags_of_the_standard() {
        let found = Found::of(3, WHOLE.as_bytes(), Kind::Dkim);
        assert_eq!(
            found.key_name().as_deref(),
            Some("sel._domainkey.example.org")
        );
        assert_eq!(found.claim.value, "YQ==");
        let signature = found.signature.unwrap();
        let content = signature.content.unwrap();
        assert_eq!(content.names, ["from", "to"]);
        assert_eq!(
            (content.header_form, content.body_form),
            (Canonicalization::Simple, Canonicalization::Simple)
        );
        assert_eq!(signature.value, b"a");
    }

    #[test]
    fn an_identity_has_320_octets_at_most() {
        let identity = |octets: usize| {
            let text = "a".repeat(octets - "@example.org".len()) + "@example.org";
            let found = Found::of(0, format!("{WHOLE}; i={text}").as_bytes(), Kind::Dkim);
            found.claim.identity == Some(text)
        };
        assert!(identity(320) && !identity(321));
    }

    #[test]
    fn faults_are_told_apart() {
        let with = |tag: &str| format!("{WHOLE}; {tag}");
        let without = |tag: &str, other: &str| WHOLE.replace(tag, other);
        for (text, expected) in [
            (with("i=a@b.example.org"), None),
            (with("i=@EXAMPLE.org"), None),
            (with("i=a@badexample.org"), Some(Fault::Identity)),
            (with("i=a@org"), Some(Fault::Identity)),
            (with("i=example.org"), Some(Fault::Syntax)),
            (with("c=relaxed"), None),
            (with("c=relaxed/nofws"), Some(Fault::Canonicalization)),
            (with("q=dns/txt:x"), None),
            (with("q=http"), Some(Fault::Method)),
            (with("l=-1"), Some(Fault::Syntax)),
            (with("l=99999999999999999999999"), None),
            (with("x="), Some(Fault::Syntax)),
            (with("a=rsa-sha256"), Some(Fault::Syntax)),
            (with("junk"), Some(Fault::Syntax)),
            (without("v=1", "v=2"), Some(Fault::Version)),
            (without("v=1; ", ""), Some(Fault::Missing("v"))),
            (without("rsa-sha256", "rsa-md5"), Some(Fault::Algorithm)),
            (without("h=From", "h=Subject"), Some(Fault::FromNotSigned)),
            (without("h=From:To; ", ""), Some(Fault::Missing("h"))),
            (without("bh=YQ==", "bh=*"), Some(Fault::Syntax)),
            (without("s=sel", "s=a b"), Some(Fault::Name)),
            (without("d=Example.org", "d="), Some(Fault::Name)),
            (String::new(), Some(Fault::Syntax)),
        ] {
            assert_eq!(fault(&text, Kind::Dkim), expected, "{text}");
        }
        let arc = without("v=1", "i=1");
        assert_eq!(fault(&arc, Kind::ArcMessage), None);
        let sealed = arc.replace("h=From", "h=ARC-Seal");
        assert_eq!(fault(&sealed, Kind::ArcMessage), Some(Fault::SealSigned));
        assert_eq!(
            fault(
                "i=1; a=rsa-sha256; cv=none; d=a.example; s=x; b=YQ",
                Kind::ArcSeal
            ),
            None
        );
    }
}
