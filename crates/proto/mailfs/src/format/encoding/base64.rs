//! Base64 (RFC 2045 section 6.8): lines of 76 characters.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;

use super::lines::{CRLF, Lines, is_line_end};
use crate::format::error::FormatError;

/// Characters of a line.
const LINE: usize = 76;
/// Body octets of a line.
const LINE_PLAIN: usize = 57;

/// The form of lines.
pub(super) const LINES: Lines = Lines {
    plain: 3,
    text: 4,
    groups: 19,
};

/// Appends the text of a body.
pub(super) fn encode(body: &[u8], text: &mut Vec<u8>) {
    for plain in body.chunks(LINE_PLAIN) {
        let mut line = [0; LINE];
        // A line always has room for 57 octets.
        let len = STANDARD.encode_slice(plain, &mut line).unwrap_or(0);
        text.extend_from_slice(line.get(..len).unwrap_or_default());
        text.extend_from_slice(CRLF);
    }
}

/// The body of a whole text. Line ends may lie anywhere: servers that rewrite line ends choose lengths of lines too.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    if let Some(body) = as_written(text) {
        return Ok(body);
    }
    let mut characters = Vec::with_capacity(text.len());
    for line in text.split(|octet| is_line_end(*octet)) {
        characters.extend_from_slice(line);
    }
    STANDARD.decode(characters).map_err(|_| MALFORMED)
}

/// The body if each line is as written: full and with CRLF, but for the last one. No copy of the text is made.
fn as_written(text: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::with_capacity(text.len());
    for line in text.chunks(LINE.saturating_add(CRLF.len())) {
        if !body.len().is_multiple_of(LINE_PLAIN) {
            return None;
        }
        decode_line(line.strip_suffix(CRLF)?, &mut body).ok()?;
    }
    Some(body)
}

const MALFORMED: FormatError = FormatError::Form {
    what: "base64 text of a mail",
    expected: "base64 with padding at the end",
};

/// Appends the octets of a line, or of a part of one that begins with a group of four.
pub(super) fn decode_line(line: &[u8], body: &mut Vec<u8>) -> Result<(), FormatError> {
    STANDARD.decode_vec(line, body).map_err(|_| MALFORMED)
}
