//! What is in a message: envelope, MIME structure, text. RFC 5322, RFC 2045, RFC 2046, RFC 2047, RFC
//! 9051 sections 7.5.2.
//!
//! [`Parsed::of`] takes the octets of a message and gives what clients ask for most, found once when
//! the message is delivered and kept beside it in a versioned encoding. Structure is found in one pass
//! over the lines, with a bound on parts and depth, so that time and memory are linear in the message
//! whatever is in it; sections are places in the message, octets are kept and nothing is decoded.
//! [`text`] decodes the text of parts and fields, for previews and for [`Searched`]: what a search sees.
//! [`wire`] is how a process that does nothing else is asked for it.
//!
//! Own code and not mail-parser's, which takes a boundary for one anywhere in a line, nests without a
//! bound and searches the rest of the message for the boundary of every multipart; its decoders of
//! charsets, dates and HTML are used.

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

mod address;
mod casemap;
mod codec;
mod content;
mod envelope;
mod fits;
mod header;
mod search;
mod sent;
mod structure;
pub mod text;
pub mod wire;

pub use address::{Address, addr_specs, addresses};
pub use casemap::casemap;
pub use codec::{AddressView, AddressesView, CodecError, EnvelopeView};
pub use content::Parameterized;
pub use envelope::{Envelope, SentDate};
pub use header::{Field, Fields, fields, header, header_len, unfold};
pub use search::{Searched, Zone};
pub use sent::sent;
pub use structure::{Part, PartKind};

/// The most parts of a message that are told apart; what comes after belongs to the last.
pub const PARTS_MAX: usize = 1_000;
/// The deepest nesting of parts; what lies deeper is not taken apart.
pub const DEPTH_MAX: usize = 50;
/// The most addresses of a field.
pub const ADDRESSES_MAX: usize = 2_000;
/// The most parameters of a field.
pub const PARAMETERS_MAX: usize = 50;
/// The most octets of a field that are kept.
pub const VALUE_OCTETS_MAX: usize = 32 * 1024;
/// The deepest nesting of comments that is understood.
const COMMENT_DEPTH_MAX: usize = 32;
/// The most message ids that a message is threaded by.
const REFERENCES_MAX: usize = 50;
/// The most characters of a preview (RFC 8970 section 3.1).
const PREVIEW_CHARS: usize = 200;

/// What was found in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// Its parts: the message itself first, each before those within it.
    pub parts: Vec<Part>,
    /// The beginning of its text (RFC 8970).
    pub preview: String,
    /// Hashes of its message id (the first; 0 without one) and of those it refers to.
    pub references: Vec<u64>,
}

impl Parsed {
    /// Takes a message apart.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let parts = structure::scan(message);
        let preview = text::preview(message, &parts, PREVIEW_CHARS);
        Self::with_references(message, parts, preview)
    }

    /// Reads the header of a message and takes its body for one part, whatever is in it: for messages that
    /// cannot be taken apart.
    #[must_use]
    pub fn of_header(message: &[u8]) -> Self {
        let part = structure::header_alone(message);
        Self::with_references(message, vec![part], String::new())
    }

    /// Takes a message for text, without reading a field of it: for messages of which not even the header
    /// can be read.
    #[must_use]
    pub fn opaque(message: &[u8]) -> Self {
        Self {
            parts: vec![structure::opaque(message)],
            preview: String::new(),
            references: vec![0],
        }
    }

    fn with_references(message: &[u8], parts: Vec<Part>, preview: String) -> Self {
        let root = parts.first().and_then(|part| part.envelope.as_deref());
        let header = parts
            .first()
            .and_then(|part| message.get(part.header.clone()));
        let references = envelope::references(root, header.unwrap_or_default());
        Self {
            parts,
            preview,
            references,
        }
    }

    /// The envelope of the message itself.
    #[must_use]
    pub fn envelope(&self) -> Option<&Envelope> {
        self.parts.first()?.envelope.as_deref()
    }
}

#[cfg(test)]
mod tests;
