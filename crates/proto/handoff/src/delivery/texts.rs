//! Texts behind their length, and values without a meaning.

use crate::octets::{HandoffError, Reader, put_length};

pub(super) const fn value(field: &'static str, expected: &'static str, found: u8) -> HandoffError {
    HandoffError::Value {
        field,
        expected,
        found,
    }
}

/// A text behind its length.
pub(super) fn text(
    reader: &mut Reader<'_>,
    field: &'static str,
    max: usize,
) -> Result<String, HandoffError> {
    let octets = reader.length(field, max)?;
    Ok(Reader(reader.take(field, octets)?).text(field)?.to_owned())
}

/// Appends a text behind its length, cut at the limit.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str, max: usize) {
    let text = cut(text, max);
    put_length(to, text.len());
    to.extend_from_slice(text.as_bytes());
}

/// As much of a text as fits.
pub(super) fn cut(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}
