//! The reasons why a signature does not pass, and the result that each stands for.

use std::fmt;

/// The result of a signature (RFC 8601 section 2.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DkimResult {
    /// The signature is valid.
    Pass,
    /// The message or the signature has been changed.
    Fail,
    /// The signature may be valid, but is not acceptable here.
    Policy,
    /// The signature cannot be understood.
    Neutral,
    /// The DNS did not answer.
    TempError,
    /// The signature cannot be checked, now or later.
    PermError,
}

impl DkimResult {
    /// Returns the word of RFC 8601 section 2.7.1.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Policy => "policy",
            Self::Neutral => "neutral",
            Self::TempError => "temperror",
            Self::PermError => "permerror",
        }
    }
}

impl fmt::Display for DkimResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The reason why a signature does not pass. The texts are comments in the field Authentication-Results: printable ASCII without
/// parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// The field is no list of tags, or a tag has no valid value (RFC 6376 section 3.2).
    #[error("malformed signature")]
    Syntax,
    /// The tag `v` is not 1 (section 3.5).
    #[error("unknown version")]
    Version,
    /// The algorithm is none of RFC 6376, RFC 8463.
    #[error("unknown algorithm")]
    Algorithm,
    /// The canonicalization is none of section 3.4.
    #[error("unknown canonicalization")]
    Canonicalization,
    /// The keys are not in the DNS: the tag `q` names other methods only (section 3.5).
    #[error("unknown query method")]
    Method,
    /// A required tag is missing (section 3.5).
    #[error("tag {0} missing")]
    Missing(&'static str),
    /// Domain and selector are no name of the DNS.
    #[error("no domain name in d or s")]
    Name,
    /// The signature does not cover the field From (section 5.4).
    #[error("From not signed")]
    FromNotSigned,
    /// The signature of a set of ARC covers ARC-Seal fields (RFC 8617 section 4.1.2).
    #[error("ARC-Seal signed")]
    SealSigned,
    /// The identity is not at the domain or below the domain (section 3.5).
    #[error("identity outside the domain")]
    Identity,
    /// The signature has expired, or expires before it was made (section 3.5).
    #[error("expired")]
    Expired,
    /// The signature was made in the future (section 3.5).
    #[error("signed in the future")]
    Future,
    /// The algorithm uses SHA-1, which RFC 8301 section 3.1 forbids.
    #[error("SHA-1 not accepted")]
    Sha1,
    /// The signature covers the beginning of the body alone: anybody can add to the message (section 8.2).
    #[error("body signed in part")]
    PartialBody,
    /// The signature covers more of the body than there is (section 3.5).
    #[error("l beyond the body")]
    LengthBeyond,
    /// The signatures cover the body up to more different lengths than are hashed.
    #[error("too many body lengths")]
    TooManyLengths,
    /// The header is longer than any that is checked.
    #[error("header too long")]
    HeaderTooLong,
    /// The DNS does not answer.
    #[error("key unavailable")]
    KeyUnavailable,
    /// The DNS has no key (section 6.1.2).
    #[error("no key")]
    NoKey,
    /// The DNS has several keys of one name (section 3.6.2.2).
    #[error("several keys")]
    SeveralKeys,
    /// The record is no key (section 3.6.1).
    #[error("malformed key")]
    KeySyntax,
    /// The key is revoked (section 3.6.1).
    #[error("key revoked")]
    KeyRevoked,
    /// The key is for another algorithm, hash or service (section 3.6.1).
    #[error("key for another use")]
    KeyUse,
    /// The key is for the domain itself, and the identity is below the domain (section 3.6.1, flag `s`).
    #[error("identity below the domain")]
    KeyStrict,
    /// The key has fewer than 1,024 bits (RFC 8301 section 3.2).
    #[error("key too short")]
    KeyShort,
    /// The key has more bits than are verified.
    #[error("key too long")]
    KeyLong,
    /// The body is another one than was signed.
    #[error("body changed")]
    BodyHash,
    /// The header is another one than was signed, or the key is another one.
    #[error("signature wrong")]
    Value,
}

impl Fault {
    /// Returns the result of a signature with this fault.
    #[must_use]
    pub const fn result(self) -> DkimResult {
        match self {
            Self::Syntax
            | Self::Version
            | Self::Algorithm
            | Self::Canonicalization
            | Self::Method => DkimResult::Neutral,
            Self::Future
            | Self::Sha1
            | Self::PartialBody
            | Self::TooManyLengths
            | Self::HeaderTooLong
            | Self::KeyShort
            | Self::KeyLong => DkimResult::Policy,
            Self::KeyUnavailable => DkimResult::TempError,
            Self::BodyHash | Self::Value => DkimResult::Fail,
            Self::Missing(_)
            | Self::Name
            | Self::FromNotSigned
            | Self::SealSigned
            | Self::Identity
            | Self::Expired
            | Self::LengthBeyond
            | Self::NoKey
            | Self::SeveralKeys
            | Self::KeySyntax
            | Self::KeyRevoked
            | Self::KeyUse
            | Self::KeyStrict => DkimResult::PermError,
        }
    }
}
