//! Failures of a filter.

use crate::change::FieldError;
use crate::session::Event;

/// A filter that broke the protocol or a bound; the connection is unusable then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MilterError {
    /// The packet announces no octets or too many.
    #[error("expected a packet of 1 to 65536 octets; found {0}")]
    Length(usize),
    /// The filter speaks another version.
    #[error("expected a filter of milter protocol version 2 to 6; found {0}")]
    Version(u32),
    /// The filter wants changes that were not offered.
    #[error("the filter wants actions that were not offered: {0:#x}")]
    Actions(u32),
    /// The filter wants a part of the protocol that was not offered.
    #[error("the filter wants protocol flags that were not offered: {0:#x}")]
    Protocol(u32),
    /// The filter wants macros of a stage that does not exist.
    #[error("macros of unknown stage {0}")]
    Stage(usize),
    /// The data of a packet end early.
    #[error("{0} ends early")]
    Cut(&'static str),
    /// Octets that are no UTF-8 where text must be.
    #[error("expected a text in UTF-8; found other octets")]
    NotText,
    /// The code does not exist.
    #[error("answer of unknown code {0:#04x}")]
    Code(u8),
    /// The answer does not fit the command.
    #[error("answer '{}' does not fit {event}", char::from(*.code))]
    Unexpected {
        /// The code of the answer.
        code: u8,
        /// The command that was answered.
        event: Event,
    },
    /// Another answer than the negotiation came first.
    #[error("expected the answer to the negotiation ('O'); found code {0:#04x}")]
    NotNegotiated(u8),
    /// Octets came though no answer was due.
    #[error("the filter sent octets unasked")]
    Unasked,
    /// The reply is none of SMTP.
    #[error("expected a reply with a code of 4xx or 5xx; found another text")]
    Reply,
    /// A header field that cannot stand in a message.
    #[error("header field of the filter: {0}")]
    Field(#[from] FieldError),
    /// An address that cannot stand in an envelope.
    #[error("expected an address of at most 320 printable octets; found another text")]
    Address,
    /// Too many changes.
    #[error("more than {0} changes")]
    Changes(usize),
    /// Changes of headers and envelope that are too long together.
    #[error("changes of more than {0} octets")]
    ChangedOctets(usize),
    /// A body that is too long.
    #[error("replaced body of more than {0} octets")]
    Body(usize),
}
