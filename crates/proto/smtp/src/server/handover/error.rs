//! Why a session is not handed over, and why octets are no hand-over.

use crate::command::CommandError;

/// Why a session cannot be handed over now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverRefused {
    /// Host: the greeting waits in the output.
    #[error("expected a greeting that was sent; found a greeting in the output")]
    Greeting,
    /// Host: a question is open, a text or a handshake has begun, or the session ends.
    #[error("expected a session between two commands; found another phase")]
    Phase,
    /// Host: no recipient is accepted.
    #[error("expected a transaction with a recipient; found no recipient")]
    NoRecipient,
    /// Host: the text of the message has begun with BDAT.
    #[error("expected a transaction without text; found chunks")]
    Chunks,
    /// Host: the machine was given a part of a line.
    #[error("expected the end of a line; found a line that has begun")]
    Line,
    /// Host: the transaction has this many recipients, more than 1,000.
    #[error("expected at most 1000 recipients; found {0}")]
    Recipients(usize),
    /// Host: this many octets of replies wait, more than 32,768.
    #[error("expected at most 32768 octets of replies; found {0}")]
    Replies(usize),
    /// Host: this text has more than 1,024 octets or a control character.
    #[error("expected at most 1024 octets without control characters in {0}; found another text")]
    Text(&'static str),
}

/// The error in the octets of a hand-over; always the fault of the process that has written them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// The octets have this unknown version.
    #[error("expected version {expected}; found version {found}")]
    Version {
        /// The version of this program.
        expected: u8,
        /// That of the octets.
        found: u8,
    },
    /// The octets end within a field.
    #[error("expected {wanted} octets in {field}; found {found}")]
    Short {
        /// The field.
        field: &'static str,
        /// The octets that the field still needs.
        wanted: usize,
        /// The octets that are left.
        found: usize,
    },
    /// This many octets follow the last field.
    #[error("expected the end of the hand-over; found {0} more octets")]
    Trailing(usize),
    /// A length or number is above its limit.
    #[error("expected at most {max} in {field}; found {found}")]
    TooMuch {
        /// The field.
        field: &'static str,
        /// The limit.
        max: usize,
        /// The length or number.
        found: usize,
    },
    /// An octet has a value without meaning.
    #[error("expected {expected} in {field}; found {found}")]
    Tag {
        /// The field.
        field: &'static str,
        /// The values with a meaning.
        expected: &'static str,
        /// The value.
        found: u8,
    },
    /// A text is not UTF-8.
    #[error("expected UTF-8 in {field}; found another octet at {at}")]
    Utf8 {
        /// The field.
        field: &'static str,
        /// The offset within the text.
        at: usize,
    },
    /// A text has a control character.
    #[error("expected text without control characters in {field}; found U+{found:04X}")]
    Control {
        /// The field.
        field: &'static str,
        /// The character as a number.
        found: u32,
    },
    /// A command or name is malformed.
    #[error("expected a valid {field}; found: {error}")]
    Command {
        /// The field.
        field: &'static str,
        /// The error in the field.
        error: CommandError,
    },
    /// A command or name is valid and has another form than the one that this program writes.
    #[error("expected {field} as this program writes it; found another form")]
    Form {
        /// The field.
        field: &'static str,
    },
    /// The transaction has no recipient.
    #[error("expected at least 1 recipient; found 0")]
    NoRecipient,
    /// The replies do not end with CRLF.
    #[error("expected CRLF at the end of the replies; found other octets")]
    Replies,
    /// Two parts of the session contradict each other.
    #[error("expected a session that a client can reach; found {0}")]
    Contradiction(&'static str),
}
