//! Why octets of a volume are refused.

use super::ids::MailId;

/// A format that was broken: what was expected, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The octets end early.
    #[error("{what}: expected {expected} more octets; found {found}")]
    Short {
        /// The format.
        what: &'static str,
        /// Octets needed by the next field.
        expected: usize,
        /// Octets left.
        found: usize,
    },
    /// Octets follow the end.
    #[error("{what}: expected the end; found {found} more octets")]
    Behind {
        /// The format.
        what: &'static str,
        /// Octets left.
        found: usize,
    },
    /// A count or length is above its bound.
    #[error("{what}: expected at most {max}; found {found}")]
    Above {
        /// What is counted.
        what: &'static str,
        /// The bound.
        max: u64,
        /// The value.
        found: u64,
    },
    /// A count or length is below its bound.
    #[error("{what}: expected at least {min}; found {found}")]
    Below {
        /// What is counted.
        what: &'static str,
        /// The bound.
        min: u64,
        /// The value.
        found: u64,
    },
    /// A number has no meaning in this version of the format.
    #[error("{what}: expected {expected}; found {found}")]
    Unknown {
        /// The field.
        what: &'static str,
        /// The known values.
        expected: &'static str,
        /// The value.
        found: u64,
    },
    /// A number differs from the number that other octets give.
    #[error("{what}: expected {expected}; found {found}")]
    Differs {
        /// The field.
        what: &'static str,
        /// The value by other octets.
        expected: u64,
        /// The value.
        found: u64,
    },
    /// The mail is another one.
    #[error("mail id: expected {expected}; found {found}")]
    Mail {
        /// The expected id.
        expected: MailId,
        /// The id found.
        found: MailId,
    },
    /// The head was damaged on the way.
    #[error("checksum of the head: expected {expected:08x}; found {found:08x}")]
    Checksum {
        /// The checksum of the octets.
        expected: u32,
        /// The checksum in the head.
        found: u32,
    },
    /// A seal does not fit: the octets were changed, or the key is another one.
    #[error("{what} at octet {at}: expected a seal by the given key; found another seal")]
    Seal {
        /// What is sealed.
        what: &'static str,
        /// The offset in the decoded body.
        at: u32,
    },
    /// Octets of a fixed form are other ones.
    #[error("{what}: expected {expected}; found other octets")]
    Form {
        /// The field.
        what: &'static str,
        /// The form.
        expected: &'static str,
    },
    /// A word of a text is missing, or another one.
    #[error("{what}: expected {expected}; found `{found}`")]
    Word {
        /// The text.
        what: &'static str,
        /// The expected word.
        expected: &'static str,
        /// The word found, shortened.
        found: String,
    },
}
