//! Encodings of bodies: what an account keeps unchanged decides which encoding the account gets.
//!
//! Offsets of the text follow from offsets of the body, so a part of a body is read by a part of the text.

mod base64;
mod eight_bit;
mod lines;

use bytes::{Buf as _, Bytes, BytesMut};
use vere_ports::mail_accounts::Part;

use self::lines::{CRLF, Lines, is_line_end};
use super::bounds::MAIL_OCTETS_MAX;
use super::error::FormatError;
use super::wire::within;

/// Empty lines that a server may add behind a text.
const ADDED_OCTETS_MAX: usize = 16;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// 80 octets become 81, and 974 octets of text are a line.
    EightBit = 1,
    /// Base64 (RFC 2045 section 6.8), and 78 octets of text are a line.
    Base64 = 2,
}

/// A part of a body, as a part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The part of the text.
    pub part: Part,
    /// Text octets before the first line end.
    first_line: u32,
    /// Octets of the decoded part before the wanted ones.
    skip: u32,
    /// Wanted octets.
    len: u32,
}

impl Encoding {
    /// The word in `Content-Transfer-Encoding`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::EightBit => "8bit",
            Self::Base64 => "base64",
        }
    }

    const fn lines(self) -> Lines {
        match self {
            Self::EightBit => eight_bit::LINES,
            Self::Base64 => base64::LINES,
        }
    }

    /// Octets of text for a body of `len` octets.
    #[must_use]
    pub const fn encoded_len(self, len: usize) -> usize {
        let lines = len.div_ceil(self.lines().line_plain() as usize);
        let text = match self {
            Self::EightBit => len.saturating_add(len.div_ceil(eight_bit::BLOCK)),
            Self::Base64 => len.div_ceil(3).saturating_mul(4),
        };
        text.saturating_add(lines.saturating_mul(2))
    }

    /// The text of a body, with CRLF at the end of each line.
    #[must_use]
    pub fn encode(self, body: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.encoded_len(body.len()));
        self.encode_to(body, &mut text);
        text
    }

    /// Appends the text of a body.
    pub fn encode_to(self, body: &[u8], text: &mut Vec<u8>) {
        match self {
            Self::EightBit => eight_bit::encode(body, text),
            Self::Base64 => base64::encode(body, text),
        }
    }

    /// The body of a whole text. Line ends may be CRLF, LF or CR, and more or none at the end.
    ///
    /// # Errors
    ///
    /// If the text is longer than that of any mail, or is not in this encoding.
    pub fn decode(self, text: &[u8]) -> Result<Vec<u8>, FormatError> {
        let max = self.encoded_len(MAIL_OCTETS_MAX);
        within(
            "octets of a mail's text",
            text.len(),
            max.saturating_add(ADDED_OCTETS_MAX),
        )?;
        match self {
            Self::EightBit => eight_bit::decode(text),
            Self::Base64 => base64::decode(text),
        }
    }

    /// The part of the text that has `len` octets of the body from `at` on.
    ///
    /// # Errors
    ///
    /// If the octets lie beyond the end of the longest body.
    pub fn span(self, at: u32, len: u32) -> Result<Span, FormatError> {
        let end = u64::from(at).saturating_add(len.into());
        within(
            "octets of a mail",
            usize::try_from(end).unwrap_or(usize::MAX),
            MAIL_OCTETS_MAX,
        )?;
        let end = at.saturating_add(len);
        let lines = self.lines();
        let first = lines.group_of(at);
        let behind = end.div_ceil(lines.plain);
        let offset = lines.offset(first);
        let text_end = if behind.is_multiple_of(lines.groups) {
            lines.offset(behind).saturating_sub(2)
        } else {
            lines.offset(behind)
        };
        let (_, before) = lines.line_of(first);
        let before = before.saturating_mul(lines.text);
        let skip = at.saturating_sub(first.saturating_mul(lines.plain));
        let length = text_end.saturating_sub(offset);
        // No octets need no text, wherever in a group they lie.
        let (length, skip) = if len == 0 { (0, 0) } else { (length, skip) };
        Ok(Span {
            part: Part { offset, length },
            first_line: lines.line_text().saturating_sub(before),
            skip,
            len,
        })
    }

    /// The wanted octets from a part of the text. Line ends must be CRLF here: with other ones offsets mean other places, and
    /// the caller reads the whole text.
    ///
    /// # Errors
    ///
    /// If the octets are not those of such a part, or too few.
    pub fn decode_part(self, span: &Span, octets: &[u8]) -> Result<BytesMut, FormatError> {
        within("octets of a part", octets.len(), span.part.length as usize)?;
        let mut body = Vec::with_capacity(octets.len());
        let mut rest = octets;
        let mut line_len = span.first_line as usize;
        while !rest.is_empty() {
            let (line, behind) = rest.split_at(line_len.min(rest.len()));
            let next = behind.strip_prefix(CRLF);
            let next = next.or_else(|| behind.is_empty().then_some(behind));
            let before = body.len();
            // As written: no search for the end of the line.
            if let Some(next) = next
                && self.decode_line(line, &mut body).is_ok()
            {
                rest = next;
            } else {
                body.truncate(before);
                // The end of a body that ends within the part; what comes behind is of no use.
                let end = line.iter().position(|octet| is_line_end(*octet));
                let end = end.or_else(|| next.map(|_| line.len())).ok_or(LINE_END)?;
                self.decode_line(line.get(..end).unwrap_or_default(), &mut body)?;
                rest = &[];
            }
            line_len = self.lines().line_text() as usize;
        }
        let from = span.skip as usize;
        let found = body.len().saturating_sub(from);
        let mut wanted = BytesMut::from(Bytes::from(body));
        if found < span.len as usize {
            return Err(FormatError::Short {
                what: "part of a mail's text",
                expected: span.len as usize,
                found,
            });
        }
        wanted.advance(from);
        wanted.truncate(span.len as usize);
        Ok(wanted)
    }

    fn decode_line(self, line: &[u8], body: &mut Vec<u8>) -> Result<(), FormatError> {
        match self {
            Self::EightBit => eight_bit::decode_line(line, body),
            Self::Base64 => base64::decode_line(line, body),
        }
    }
}

const LINE_END: FormatError = FormatError::Form {
    what: "part of a mail's text",
    expected: "CRLF at the end of a line",
};

#[cfg(test)]
mod tests;
