//! What a segment knows a message by.

/// A message of a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Its UID.
    pub uid: u32,
    /// Where its body is: the same UID with another body is another message.
    pub body: u64,
    /// The day that its Date field names (RFC 9051 section 6.4.4), counted from 1970.
    pub sent: Option<i64>,
}
