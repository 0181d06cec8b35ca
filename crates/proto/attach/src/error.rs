//! What is wrong with a frame, and with a call of a machine.

use crate::{LINE_OCTETS_MAX, TAG_OCTETS_MAX, WINDOW_MAX};

/// A fault of the other side. The connection cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line without an end within the bound.
    #[error("expected a line of at most {LINE_OCTETS_MAX} octets; found a longer line")]
    LineTooLong,
    /// No JSON, no object with one field, or a wrong number of octets.
    #[error("frame: {0}")]
    Form(String),
    /// An unknown kind.
    #[error("expected {expected}; found {found:?}")]
    Kind {
        /// The kinds.
        expected: String,
        /// The found kind.
        found: String,
    },
    /// A wrong value of a known kind.
    #[error("{kind}: {what}")]
    Value {
        /// The kind.
        kind: String,
        /// The expected and the found value.
        what: String,
    },
    /// Too many octets behind the line.
    #[error("{kind}: expected at most {most} octets; found {found}")]
    Octets {
        /// The kind.
        kind: String,
        /// The bound.
        most: u64,
        /// The announced number.
        found: u64,
    },
    /// A kind that the other side must not say now.
    #[error("expected {expected}; found {found}")]
    Turn {
        /// The kinds that are allowed now.
        expected: &'static str,
        /// The found kind.
        found: &'static str,
    },
    /// Another version.
    #[error("attach: expected version {expected}; found {found}")]
    Version {
        /// The version of this side.
        expected: u32,
        /// The other version.
        found: u32,
    },
    /// A window outside its bounds.
    #[error("attach: expected a window of 1 to {WINDOW_MAX}; found {0}")]
    Window(u32),
    /// The end of the connection within a frame.
    #[error("expected the rest of a frame; found the end of the connection")]
    Cut,
    /// The server ended the connection.
    #[error("{0}")]
    Refused(String),
}

/// A call that the state of a client does not allow. Nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A second `attach`, or another kind before it.
    #[error("expected attach first, and once")]
    Attach,
    /// The connection has ended.
    #[error("expected an open connection; found the end")]
    Ended,
    /// A tag that is in use or too long.
    #[error("expected a new tag of 1 to {TAG_OCTETS_MAX} octets")]
    Tag,
    /// No delivery with this id waits for an answer.
    #[error("expected the id of a delivery without an answer")]
    Delivery,
    /// A line over the bound.
    #[error("expected a line of at most {LINE_OCTETS_MAX} octets")]
    LineTooLong,
}
