//! Errors of octets that are no BER, or another value than expected.

use super::tag::Tag;

/// The deepest nesting of values that is read.
pub const NESTING_MAX: u8 = 32;

/// Octets that are no BER, or not the expected value: the fault of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BerError {
    /// The octets end within a value.
    #[error("expected a whole value; found its beginning")]
    Short,
    /// The value has another tag.
    #[error("expected {expected}; found {found}")]
    Tag {
        /// The tag of the expected value.
        expected: Tag,
        /// The tag of the value.
        found: Tag,
    },
    /// A value is missing.
    #[error("expected {0}; found the end")]
    Missing(Tag),
    /// A value with this tag has no place there.
    #[error("expected no further value; found {0}")]
    Unexpected(Tag),
    /// A length or a tag is encoded with too many octets, or not as X.690 allows.
    #[error("expected a tag and a length; found other octets")]
    Malformed,
    /// Values are nested too deep.
    #[error("expected at most {NESTING_MAX} levels of nesting; found more")]
    Nesting,
    /// The content of a value does not fit its type, or is out of bounds.
    #[error("expected {0}; found other octets")]
    Content(&'static str),
}
