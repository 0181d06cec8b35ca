//! SASL (RFC 4422) for SMTP AUTH (RFC 4954) and IMAP AUTHENTICATE, both sides: PLAIN, LOGIN and
//! SCRAM-SHA-256. Clients have OAUTHBEARER (RFC 7628) and XOAUTH2 as well.
//!
//! The exchanges process decoded messages; the transport (`334`, base64, `*`, the lone `=`) is the
//! task of the protocol command, with the help of [`decode`] and [`encode`]. The crate draws no
//! random numbers: nonces come from a [`NonceSource`] seeded once by the host.
//!
//! Not covered: channel binding (no `-PLUS` name is offered; the `y` and `p` flags are answered as
//! RFC 5802 section 6 asks), SASL security layers, EXTERNAL, and the server's side of the OAuth mechanisms.

#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        reason = "a panic is how a test fails"
    )
)]

pub mod client;
pub mod server;

mod nonce;
mod scram;

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use nonce::{Nonce, NonceSource};
pub use scram::{FakeKeys, KeyError, ScramKeys};

/// Octets of an authentication or authorisation identity taken; RFC 4616 section 2 asks for at
/// least 255, an SMTP address has up to 254 (RFC 5321 section 4.5.3.1.3).
pub const NAME_LENGTH_MAX: usize = 320;

/// Octets of a password taken; RFC 4616 section 2 asks for at least 255.
pub const PASSWORD_LENGTH_MAX: usize = 1024;

/// Base64 octets of one SASL message taken, the figure of RFC 4954 section 4.
pub const MESSAGE_LENGTH_MAX: usize = 12_288;

/// A mechanism of this crate, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mechanism {
    /// `SCRAM-SHA-256`, RFC 7677: the password never travels, and the server proves itself too.
    ScramSha256,
    /// `PLAIN`, RFC 4616: the password in one message.
    Plain,
    /// `LOGIN`, draft-murchison-sasl-login-00: name and password in two messages.
    Login,
}

impl Mechanism {
    /// All mechanisms, best first: the order of the offer.
    pub const ALL: [Self; 3] = [Self::ScramSha256, Self::Plain, Self::Login];

    /// Returns the registered name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::Plain => "PLAIN",
            Self::Login => "LOGIN",
        }
    }

    /// Finds a mechanism by name, in any case (RFC 4954 section 4).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
    }

    /// Says whether the password itself travels, so that the mechanism needs an encrypted way.
    #[must_use]
    pub fn reveals_password(self) -> bool {
        matches!(self, Self::Plain | Self::Login)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a base64 line is no SASL message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Peer: the line is longer than [`MESSAGE_LENGTH_MAX`].
    #[error("message over {MESSAGE_LENGTH_MAX} octets")]
    TooLong,
    /// Peer: the line is not base64 with its padding (RFC 4648 section 4).
    #[error("message is not base64")]
    NotBase64,
}

/// Decodes one base64 message without its line end; an empty line is the empty message.
///
/// The initial response `=` (RFC 4954 section 4) is an empty message too; the command handles `=`,
/// because no other message has this meaning.
///
/// # Errors
///
/// [`MessageError`], always the peer's fault.
pub fn decode(line: &[u8]) -> Result<Vec<u8>, MessageError> {
    if line.len() > MESSAGE_LENGTH_MAX {
        return Err(MessageError::TooLong);
    }
    STANDARD.decode(line).map_err(|_| MessageError::NotBase64)
}

/// Encodes one message as base64, without a line end.
#[must_use]
pub fn encode(message: &[u8]) -> String {
    STANDARD.encode(message)
}

/// A string holds code points that no prepared string may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("text is not allowed by SASLprep (RFC 4013)")]
pub struct PrepareError;

/// Prepares a user name or password for comparison by SASLprep (RFC 4013).
///
/// The storing side and the verifying side both prepare a password, so that the same text typed on
/// two keyboards is equal. Plain ASCII is returned unchanged, without allocation.
///
/// # Errors
///
/// [`PrepareError`] for control characters, unassigned code points and mixed writing directions.
pub fn prepare(text: &str) -> Result<Cow<'_, str>, PrepareError> {
    if text.bytes().all(|octet| matches!(octet, b' '..=b'~')) {
        return Ok(Cow::Borrowed(text));
    }
    stringprep::saslprep(text).map_err(|_| PrepareError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::from_name(mechanism.name()), Some(mechanism));
            assert_eq!(
                Mechanism::from_name(&mechanism.name().to_lowercase()),
                Some(mechanism)
            );
        }
        assert_eq!(Mechanism::from_name("SCRAM-SHA-256-PLUS"), None);
        assert_eq!(Mechanism::from_name(""), None);
    }

    #[test]
    fn base64_is_strict() {
        assert_eq!(decode(b"AHQAcA=="), Ok(b"\0t\0p".to_vec()));
        assert_eq!(decode(b""), Ok(Vec::new()));
        for bad in [
            &b"AHQAcA"[..],
            b"AHQAcA=",
            b"AHQ AcA==",
            b"=",
            b"*",
            b"A===",
            b"AHQAcB==",
        ] {
            assert_eq!(decode(bad), Err(MessageError::NotBase64), "{bad:?}");
        }
        assert_eq!(
            decode(&vec![b'A'; MESSAGE_LENGTH_MAX + 4]),
            Err(MessageError::TooLong)
        );
    }

    /// The examples of RFC 4013 section 3.
    #[test]
    fn prepares_as_rfc_4013() {
        assert_eq!(prepare("I\u{AD}X").unwrap(), "IX");
        assert_eq!(prepare("user").unwrap(), "user");
        assert_eq!(prepare("USER").unwrap(), "USER");
        assert_eq!(prepare("\u{AA}").unwrap(), "a");
        assert_eq!(prepare("\u{2168}").unwrap(), "IX");
        assert_eq!(prepare("\u{07}"), Err(PrepareError));
        assert_eq!(prepare("\u{627}\u{31}"), Err(PrepareError));
    }
}
