//! The identity of a message in a segment.

/// A message of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Its UID.
    pub uid: u32,
    /// The position of the body: the same UID with another body is another message.
    pub body: u64,
    /// The day in the Date field (RFC 9051 section 6.4.4), counted from 1970.
    pub sent: Option<i64>,
}
