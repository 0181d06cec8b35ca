//! Parses messages: envelope, MIME structure, text. RFC 5322, RFC 2045, RFC 2046, RFC 2047, RFC 9051
//! sections 7.5.2.
//!
//! [`Parsed::of`] parses the octets of a message once, at delivery, for the data that clients request
//! most; the result is kept beside the message in a versioned encoding. The structure is found in one pass
//! over the lines, with limits on parts and depth, so that time and memory are linear in the size of any
//! message; sections are ranges of the message, and octets are kept without decoding. [`text`] decodes the
//! text of parts and fields, for previews and for [`Searched`], the searchable text of a message. [`wire`]
//! is the protocol to a separate parser process.
//!
//! Own code instead of mail-parser: mail-parser accepts a boundary anywhere in a line, nests without a
//! limit and searches the rest of the message for the boundary of every multipart; this crate uses its
//! decoders of charsets, dates and HTML.

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

/// The most parts of a message; the octets behind belong to the last part.
pub const PARTS_MAX: usize = 1_000;
/// The deepest nesting of parts; what lies deeper is not taken apart.
pub const DEPTH_MAX: usize = 50;
/// The most addresses of a field.
pub const ADDRESSES_MAX: usize = 2_000;
/// The most parameters of a field.
pub const PARAMETERS_MAX: usize = 50;
/// The most octets kept of a field.
pub const VALUE_OCTETS_MAX: usize = 32 * 1024;
/// The deepest nesting of comments that is parsed.
const COMMENT_DEPTH_MAX: usize = 32;
/// The most message ids kept for threading a message.
const REFERENCES_MAX: usize = 50;
/// The most characters of a preview (RFC 8970 section 3.1).
const PREVIEW_CHARS: usize = 200;

/// The parse result of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The parts: the message first, each part before its children.
    pub parts: Vec<Part>,
    /// The beginning of the text (RFC 8970).
    pub preview: String,
    /// Hashes of the message id (the first hash; 0 without a message id) and of the referenced message
    /// ids.
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

    /// Parses the header of a message and treats the body as a single part: for messages whose structure
    /// cannot be parsed.
    #[must_use]
    pub fn of_header(message: &[u8]) -> Self {
        let part = structure::header_alone(message);
        Self::with_references(message, vec![part], String::new())
    }

    /// Treats a message as text without parsing a field: for messages whose header cannot be parsed.
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
