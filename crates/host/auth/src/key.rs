//! Keys in the DNS (RFC 6376 section 3.6.1), and the arithmetic of signatures, which is ring's.

use ring::digest::{SHA256, digest};
use ring::signature::{
    ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

use crate::fault::Fault;
use crate::signature::{Algorithm, decode};
use crate::tags::Tags;

/// Most octets of a record: a key of 8,192 bits has 1,420 characters, and notes (`n=`) some more.
const RECORD_OCTETS_MAX: usize = 4_096;
/// Fewest bits of an RSA key (RFC 8301 section 3.2).
const BITS_MIN: usize = 1_024;
/// Most bits of an RSA key. RFC 8301 section 3.2 demands 4,096; ring verifies up to 8,192, which takes a millisecond.
const BITS_MAX: usize = 8_192;

/// A key as its record states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    is_ed25519: bool,
    octets: Vec<u8>,
    /// Whether the hash and the service of the record include SHA-256 and mail.
    is_for_mail: bool,
    /// The domain tests DKIM (flag `y`).
    pub(crate) is_testing: bool,
    /// Identities have the domain itself (flag `s`).
    is_strict: bool,
}

/// Returns the key among the records of a name.
///
/// # Errors
/// A [`Fault`] for no key, or several.
pub(crate) fn of_records(records: &[Vec<u8>]) -> Result<Key, Fault> {
    let mut keys = Vec::new();
    let mut fault = Fault::NoKey;
    for record in records {
        match of(record) {
            Ok(key) => keys.push(key),
            // A record of another standard at this name says nothing about the key.
            Err(Fault::NoKey) => {}
            Err(other) => fault = other,
        }
    }
    match (keys.pop(), keys.is_empty()) {
        (Some(key), true) => Ok(key),
        (Some(_), false) => Err(Fault::SeveralKeys),
        (None, _) => Err(fault),
    }
}

fn of(record: &[u8]) -> Result<Key, Fault> {
    if record.len() > RECORD_OCTETS_MAX {
        return Err(Fault::KeySyntax);
    }
    let tags = Tags::of(record).map_err(|_| Fault::KeySyntax)?;
    match tags.value("v") {
        None => {}
        // The version stands first.
        Some(b"DKIM1") if tags.first().is_some_and(|(name, _)| name == b"v") => {}
        Some(_) => return Err(Fault::NoKey),
    }
    let is_ed25519 = match tags.value("k").unwrap_or(b"rsa") {
        b"rsa" => false,
        b"ed25519" => true,
        _ => return Err(Fault::KeyUse),
    };
    let octets = tags.compact("p").ok_or(Fault::KeySyntax)?;
    if octets.is_empty() {
        return Err(Fault::KeyRevoked);
    }
    let has = |tag: &str, words: &[&[u8]]| {
        let listed = tags.compact(tag).unwrap_or_default();
        let mut listed = listed.split(|octet| *octet == b':');
        listed.any(|word| words.contains(&word))
    };
    let allows = |tag: &str, words: &[&[u8]]| tags.value(tag).is_none() || has(tag, words);
    Ok(Key {
        is_ed25519,
        octets: decode(&octets).ok_or(Fault::KeySyntax)?,
        is_for_mail: allows("h", &[b"sha256"]) && allows("s", &[b"*", b"email"]),
        is_testing: has("t", &[b"y"]),
        is_strict: has("t", &[b"s"]),
    })
}

impl Key {
    /// Verifies the signature of octets.
    ///
    /// # Errors
    /// A [`Fault`] for a key that is not for such signatures, and for a wrong signature.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        is_below_domain: bool,
        octets: &[u8],
        signature: &[u8],
    ) -> Result<(), Fault> {
        if !self.is_for_mail || self.is_ed25519 != (algorithm == Algorithm::Ed25519Sha256) {
            return Err(Fault::KeyUse);
        }
        if self.is_strict && is_below_domain {
            return Err(Fault::KeyStrict);
        }
        let verified = match algorithm {
            Algorithm::RsaSha1 => return Err(Fault::Sha1),
            // RFC 8463 section 3: the hash is signed.
            Algorithm::Ed25519Sha256 => UnparsedPublicKey::new(&ED25519, &self.octets)
                .verify(digest(&SHA256, octets).as_ref(), signature),
            Algorithm::RsaSha256 => rsa(&self.octets)?.verify(
                &RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
                octets,
                signature,
            ),
        };
        verified.map_err(|_| Fault::Value)
    }
}

/// The numbers of an RSA key of an acceptable size. The key is an RSAPublicKey by RFC 6376 section 3.6.1, and in all records a
/// SubjectPublicKeyInfo (erratum 3017) with an RSAPublicKey inside.
fn rsa(octets: &[u8]) -> Result<RsaPublicKeyComponents<&[u8]>, Fault> {
    let key = numbers(octets)
        .or_else(|| numbers(inside_info(octets)?))
        .ok_or(Fault::KeySyntax)?;
    let leading = key.n.first().map_or(0, |octet| octet.leading_zeros());
    let bits = key.n.len().saturating_mul(8);
    match bits.saturating_sub(usize::try_from(leading).unwrap_or(0)) {
        ..BITS_MIN => Err(Fault::KeyShort),
        BITS_MIN..=BITS_MAX => Ok(key),
        _ => Err(Fault::KeyLong),
    }
}

/// RSAPublicKey ::= SEQUENCE { modulus INTEGER, publicExponent INTEGER }
fn numbers(octets: &[u8]) -> Option<RsaPublicKeyComponents<&[u8]>> {
    let (inside, _) = element(octets, SEQUENCE)?;
    let (n, rest) = element(inside, INTEGER)?;
    let (e, _) = element(rest, INTEGER)?;
    let positive = |number: &'_ [u8]| number.iter().take_while(|octet| **octet == 0).count();
    Some(RsaPublicKeyComponents {
        n: n.get(positive(n)..)?,
        e: e.get(positive(e)..)?,
    })
}

/// SubjectPublicKeyInfo ::= SEQUENCE { algorithm SEQUENCE, subjectPublicKey BIT STRING }
fn inside_info(octets: &[u8]) -> Option<&[u8]> {
    let (inside, _) = element(octets, SEQUENCE)?;
    let (_, rest) = element(inside, SEQUENCE)?;
    let (bits, _) = element(rest, BIT_STRING)?;
    // The first octet counts unused bits.
    bits.strip_prefix(&[0])
}

const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const SEQUENCE: u8 = 0x30;

/// Splits the content of the first element of DER, and the octets behind it.
fn element(octets: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = octets.split_first()?;
    let (short, rest) = rest.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(*short), rest),
        0x81..=0x83 => {
            let (length, rest) = rest.split_at_checked(usize::from(short & 3))?;
            let add = |sum: usize, octet: &u8| (sum << 8) | usize::from(*octet);
            (length.iter().fold(0, add), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 8463 appendix A.2.
    const ED25519_RECORD: &str =
        "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn fault(records: &[&str]) -> Option<Fault> {
        let records: Vec<_> = records
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
        of_records(&records).err()
    }

    #[test]
    fn records_are_keys_or_are_not() {
        let long = format!("p=YQ==; n={}", "x".repeat(RECORD_OCTETS_MAX));
        for (records, expected) in [
            (&[ED25519_RECORD][..], None),
            (&["p=YQ=="], None),
            (&["v=spf1 -all", ED25519_RECORD], None),
            (&["junk"], Some(Fault::KeySyntax)),
            (&["v=DMARC1; p=none"], Some(Fault::NoKey)),
            (&["p=YQ==; v=DKIM1"], Some(Fault::NoKey)),
            (&["v=DKIM1"], Some(Fault::KeySyntax)),
            (&["v=DKIM1; p="], Some(Fault::KeyRevoked)),
            (&["k=dsa; p=YQ=="], Some(Fault::KeyUse)),
            (&[ED25519_RECORD, "p=YQ=="], Some(Fault::SeveralKeys)),
            (&[], Some(Fault::NoKey)),
            (&[&long], Some(Fault::KeySyntax)),
        ] {
            assert_eq!(fault(records), expected, "{records:?}");
        }
    }

    #[test]
    fn a_record_has_4096_octets_at_most() {
        let with = |octets: usize| {
            let record = format!("{ED25519_RECORD}; n=");
            record.clone() + &"x".repeat(octets - record.len())
        };
        assert_eq!(fault(&[&with(RECORD_OCTETS_MAX)]), None);
        assert_eq!(
            fault(&[&with(RECORD_OCTETS_MAX + 1)]),
            Some(Fault::KeySyntax)
        );
    }

    #[test]
    fn keys_are_for_a_use() {
        let fault = |record: &str, below| {
            let key = of_records(&[record.as_bytes().to_vec()]).unwrap();
            key.verify(Algorithm::Ed25519Sha256, below, b"", b"").err()
        };
        let with = |tags: &str| format!("{ED25519_RECORD}; {tags}");
        assert_eq!(fault(ED25519_RECORD, true), Some(Fault::Value));
        assert_eq!(
            fault(&with("t=y:s; s=other:email"), false),
            Some(Fault::Value)
        );
        assert_eq!(fault(&with("t=s"), true), Some(Fault::KeyStrict));
        assert_eq!(fault(&with("h=sha1"), false), Some(Fault::KeyUse));
        assert_eq!(fault(&with("s=tlsrpt"), false), Some(Fault::KeyUse));
        assert_eq!(fault("p=YQ==", false), Some(Fault::KeyUse));
    }

    #[test]
    fn sizes_of_keys_are_bounded() {
        let size = |octets: usize| {
            let n = [&[0][..], &vec![0xff; octets]].concat();
            let length = |octets: usize| [0x82, (octets >> 8) as u8, octets as u8];
            let n = [&[INTEGER][..], &length(n.len()), &n].concat();
            let inside = [&n[..], &[INTEGER, 3, 1, 0, 1]].concat();
            let der = [&[SEQUENCE][..], &length(inside.len()), &inside].concat();
            rsa(&der).err()
        };
        assert_eq!(size(127), Some(Fault::KeyShort));
        assert_eq!(size(128), None);
        assert_eq!(size(1_024), None);
        assert_eq!(size(1_025), Some(Fault::KeyLong));
        for der in [
            &b""[..],
            b"\x30",
            b"\x30\x84\x01",
            b"\x30\x83\xff\xff\xff",
            b"\x30\x00",
        ] {
            assert_eq!(rsa(der).err(), Some(Fault::KeySyntax));
        }
    }
}
