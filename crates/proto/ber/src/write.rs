//! Writes values from pieces: definite lengths in the shortest form.

use bytes::{BufMut, Bytes, BytesMut};

use super::bits::BitString;
use super::header::length;
pub use super::header::put_header;
use super::oid::ObjectIdentifier;
use super::pieces::Pieces;
use super::tag::Tag;
use super::writer::shortest;

/// Octets of a header with this tag before a content of this length.
#[must_use]
pub fn header_len(tag: Tag, length: u64) -> usize {
    let mut header = BytesMut::new();
    put_header(&mut header, tag, false, length);
    header.len()
}

/// A primitive value.
#[must_use]
pub fn primitive(tag: Tag, content: &[u8]) -> Pieces {
    let mut octets = BytesMut::with_capacity(content.len().saturating_add(8));
    put_header(&mut octets, tag, false, length(content.len()));
    octets.put_slice(content);
    Pieces::from(octets.freeze())
}

/// A primitive value whose content stays in its pieces.
#[must_use]
pub fn spliced(tag: Tag, content: Pieces) -> Pieces {
    wrapped(tag, false, content)
}

/// A constructed value of these values.
#[must_use]
pub fn constructed(tag: Tag, values: impl IntoIterator<Item = Pieces>) -> Pieces {
    let mut content = Pieces::new();
    for value in values {
        content.append(value);
    }
    wrapped(tag, true, content)
}

fn wrapped(tag: Tag, constructed: bool, content: Pieces) -> Pieces {
    let mut header = BytesMut::with_capacity(16);
    put_header(&mut header, tag, constructed, length(content.len()));
    let mut value = Pieces::from(header.freeze());
    value.append(content);
    value
}

/// An INTEGER, or a value of another tag with the contents of one.
#[must_use]
pub fn integer(tag: Tag, number: i64) -> Pieces {
    primitive(tag, shortest(&number.to_be_bytes()))
}

/// An OBJECT IDENTIFIER, or a value of another tag with the content of one.
#[must_use]
pub fn oid(tag: Tag, identifier: &ObjectIdentifier) -> Pieces {
    primitive(tag, identifier.contents())
}

/// A BIT STRING, or a value of another tag with the content of one.
#[must_use]
pub fn bit_string(tag: Tag, bits: &BitString) -> Pieces {
    primitive(tag, &bits.contents())
}

/// A value that is encoded already.
#[must_use]
pub fn encoded(value: &Bytes) -> Pieces {
    Pieces::from(value.clone())
}
