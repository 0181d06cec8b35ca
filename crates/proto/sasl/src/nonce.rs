//! Nonces for SCRAM without a random generator: keyed from a seed that the host draws once.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::encode;
use super::scram::hmac;

/// A nonce, unguessable and never used twice: printable US-ASCII without comma (RFC 5802 section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// The longest nonce of a peer in octets.
    pub const LENGTH_MAX: usize = 256;

    /// Parses a nonce; `None` for invalid text.
    ///
    /// ```text
    /// printable = %x21-2B / %x2D-7E
    /// nonce     = 1*printable
    /// ```
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        is_nonce(text).then(|| Self(text.to_owned()))
    }

    /// Returns the nonce as it travels.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Says whether the text is a nonce by the grammar and not over its bound.
pub(super) fn is_nonce(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= Nonce::LENGTH_MAX
        && text
            .bytes()
            .all(|octet| matches!(octet, 0x21..=0x2B | 0x2D..=0x7E))
}

/// Makes [`Nonce`]s: HMAC-SHA-256 of a counter, keyed with the host's random seed.
///
/// One source serves all connections of a process, and may be shared between threads.
pub struct NonceSource {
    seed: [u8; 32],
    next: AtomicU64,
}

impl NonceSource {
    /// Makes a source from 32 octets of a cryptographic generator, drawn anew at every start.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            seed,
            next: AtomicU64::new(0),
        }
    }

    /// Returns a nonce of 32 characters (192 bits) that this source has not returned before.
    #[must_use]
    pub fn next(&self) -> Nonce {
        let ordinal = self.next.fetch_add(1, Ordering::Relaxed);
        let octets = hmac(&self.seed, &[b"nonce", &ordinal.to_be_bytes()]);
        Nonce(encode(
            octets
                .first_chunk::<24>()
                .map_or(&octets[..], |chunk| &chunk[..]),
        ))
    }
}

impl fmt::Debug for NonceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonceSource").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_differ_and_are_nonces() {
        let source = NonceSource::new([7; 32]);
        let (first, second) = (source.next(), source.next());
        assert_ne!(first, second);
        assert!(is_nonce(first.as_str()));
        assert_eq!(first.as_str().len(), 32);
        assert_ne!(NonceSource::new([8; 32]).next(), first);
    }

    #[test]
    fn refuses_what_is_no_nonce() {
        for bad in ["", "a,b", "a b", "a\u{7f}", "é", &"n".repeat(257)] {
            assert_eq!(Nonce::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn seed_is_not_printed() {
        assert_eq!(
            format!("{:?}", NonceSource::new([7; 32])),
            "NonceSource { .. }"
        );
    }
}
