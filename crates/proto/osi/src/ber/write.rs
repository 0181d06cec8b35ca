//! Writes values from pieces: definite lengths in the shortest form.

use bytes::{BufMut, Bytes, BytesMut};

use super::{BitString, Class, ObjectIdentifier, Tag};
use crate::pieces::Pieces;

/// Appends a header: identifier octets and a definite length.
pub fn put_header(to: &mut BytesMut, tag: Tag, constructed: bool, length: u64) {
    let class = match tag.class {
        Class::Universal => 0,
        Class::Application => 0x40,
        Class::Context => 0x80,
        Class::Private => 0xc0,
    };
    let lead = class | if constructed { 0x20 } else { 0 };
    match u8::try_from(tag.number) {
        Ok(low @ 0..=30) => to.put_u8(lead | low),
        _ => {
            to.put_u8(lead | 0x1f);
            put_long_number(to, tag.number);
        }
    }
    put_length(to, length);
}

fn put_long_number(to: &mut BytesMut, number: u32) {
    for shift in [28, 21, 14, 7] {
        if number >> shift != 0 {
            to.put_u8(0x80 | (number >> shift).to_le_bytes()[0] & 0x7f);
        }
    }
    to.put_u8(number.to_le_bytes()[0] & 0x7f);
}

fn put_length(to: &mut BytesMut, length: u64) {
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => to.put_u8(short),
        _ => {
            let octets = length.to_be_bytes();
            let skip = usize::try_from(length.leading_zeros() / 8).unwrap_or(0);
            let long = octets.get(skip..).unwrap_or(&octets);
            to.put_u8(0x80 | u8::try_from(long.len()).unwrap_or(8));
            to.put_slice(long);
        }
    }
}

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
    put_header(&mut octets, tag, false, len_of(content.len()));
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
    put_header(&mut header, tag, constructed, len_of(content.len()));
    let mut value = Pieces::from(header.freeze());
    value.append(content);
    value
}

/// An INTEGER, or a value of another tag with the content of one.
#[must_use]
pub fn integer(tag: Tag, number: i64) -> Pieces {
    primitive(tag, integer_content(&number.to_be_bytes()))
}

/// The shortest octets of the number (X.690 clause 8.3.2).
fn integer_content(octets: &[u8]) -> &[u8] {
    match octets {
        [0, second, ..] if second & 0x80 == 0 => integer_content(octets.get(1..).unwrap_or(octets)),
        [0xff, second, ..] if second & 0x80 != 0 => {
            integer_content(octets.get(1..).unwrap_or(octets))
        }
        _ => octets,
    }
}

/// An OBJECT IDENTIFIER, or a value of another tag with the content of one.
#[must_use]
pub fn oid(tag: Tag, identifier: &ObjectIdentifier) -> Pieces {
    primitive(tag, identifier.content())
}

/// A BIT STRING, or a value of another tag with the content of one.
#[must_use]
pub fn bit_string(tag: Tag, bits: &BitString) -> Pieces {
    let mut content = Vec::with_capacity(bits.octets.len().saturating_add(1));
    content.push(bits.unused);
    content.extend_from_slice(&bits.octets);
    primitive(tag, &content)
}

/// A value that is encoded already.
#[must_use]
pub fn encoded(value: &Bytes) -> Pieces {
    Pieces::from(value.clone())
}

fn len_of(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
