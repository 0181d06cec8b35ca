//! 8bit: blocks of 80 octets become a key and 80 octets, none of them NUL, LF or CR.
//!
//! A block is a key octet k and each octet b as (b + k) mod 256. k is the least number from 1 on for which no octet becomes NUL,
//! LF or CR, and the last octet of a line neither blank nor TAB; k itself is none of NUL, TAB, LF, CR, blank, `.`, `=`, `>`, `F`.
//! So no line begins with a dot, `>` or `From `. 80 octets exclude at most 242 of 256 numbers, and 9 are excluded for k: a k always
//! exists.

use super::lines::{CRLF, Lines, is_line_end};
use crate::format::error::FormatError;

/// Octets of a block.
pub(super) const BLOCK: usize = 80;
/// Blocks of a line.
const BLOCKS: usize = 12;
/// Octets of a line's text, without CRLF.
const LINE: usize = (BLOCK + 1) * BLOCKS;

/// The form of lines.
pub(super) const LINES: Lines = Lines {
    plain: 80,
    text: 81,
    groups: 12,
};

const fn is_key(octet: u8) -> bool {
    !matches!(
        octet,
        0 | b'\t' | b'\n' | b'\r' | b' ' | b'.' | b'=' | b'>' | b'F'
    )
}

/// 1 for an octet that a text must not have, else 0: a number, so that loops over blocks need no branch.
#[inline]
const fn forbidden(octet: u8) -> u8 {
    (octet == 0) as u8 | (octet == b'\n') as u8 | (octet == b'\r') as u8
}

/// Appends the text of a body.
pub(super) fn encode(body: &[u8], text: &mut Vec<u8>) {
    for line in body.chunks(BLOCK.saturating_mul(BLOCKS)) {
        let (blocks, rest) = line.as_chunks::<BLOCK>();
        let (last, others) = match blocks.split_last() {
            Some((last, others)) if rest.is_empty() => (Some(last), others),
            _ => (None, blocks),
        };
        for block in others {
            encode_block(block, false, text);
        }
        if let Some(block) = last {
            encode_block(block, true, text);
        } else {
            encode_rest(rest, text);
        }
        text.extend_from_slice(CRLF);
    }
}

fn encode_block(block: &[u8; BLOCK], ends_line: bool, text: &mut Vec<u8>) {
    for key in (1..=u8::MAX).filter(|key| is_key(*key)) {
        let mut shifted = [0; BLOCK];
        let mut bad = 0;
        for (to, from) in shifted.iter_mut().zip(block) {
            *to = from.wrapping_add(key);
            bad |= forbidden(*to);
        }
        let [.., last] = shifted;
        if bad == 0 && !(ends_line && is_blank(last)) {
            text.push(key);
            text.extend_from_slice(&shifted);
            return;
        }
    }
}

/// The last block of a body, if shorter.
fn encode_rest(rest: &[u8], text: &mut Vec<u8>) {
    let fits = |key: u8| {
        let mut shifted = rest.iter().map(|octet| octet.wrapping_add(key));
        let last = rest.last().map(|octet| octet.wrapping_add(key));
        is_key(key) && shifted.all(|octet| forbidden(octet) == 0) && !last.is_some_and(is_blank)
    };
    if let Some(key) = (1..=u8::MAX).find(|key| fits(*key)) {
        text.push(key);
        text.extend(rest.iter().map(|octet| octet.wrapping_add(key)));
    }
}

const fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t')
}

/// The body of a whole text. Between lines there may be CRLF, LF or CR, behind the last line any number of these.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut body = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // As written: no search for the end of the line.
        let as_written = rest
            .split_at_checked(LINE)
            .and_then(|(line, behind)| Some((line, behind.strip_prefix(CRLF)?)));
        let before = body.len();
        if let Some((line, behind)) = as_written
            && decode_line(line, &mut body).is_ok()
        {
            rest = behind;
            continue;
        }
        body.truncate(before);
        let end = rest.iter().position(|octet| is_line_end(*octet));
        let (line, behind) = rest.split_at(end.unwrap_or(rest.len()));
        if line.len() > LINE {
            return Err(MALFORMED);
        }
        decode_line(line, &mut body)?;
        if line.len() < LINE {
            return match behind.iter().all(|octet| is_line_end(*octet)) {
                true => Ok(body),
                false => Err(MALFORMED),
            };
        }
        rest = behind
            .strip_prefix(CRLF)
            .or_else(|| behind.get(1..))
            .unwrap_or_default();
    }
    Ok(body)
}

const MALFORMED: FormatError = FormatError::Form {
    what: "8bit text of a mail",
    expected: "lines of 972 octets with keys",
};

/// Appends the octets of a line, or of a part of one that begins with a block.
pub(super) fn decode_line(line: &[u8], body: &mut Vec<u8>) -> Result<(), FormatError> {
    const CODED: usize = BLOCK + 1;
    let (blocks, rest) = line.as_chunks::<CODED>();
    let mut bad = 0;
    for [key, block @ ..] in blocks {
        let mut plain = [0; BLOCK];
        for (to, from) in plain.iter_mut().zip(block) {
            *to = from.wrapping_sub(*key);
            bad |= forbidden(*from);
        }
        bad |= u8::from(!is_key(*key));
        body.extend_from_slice(&plain);
    }
    if let Some((key, block)) = rest.split_first() {
        bad |= u8::from(!is_key(*key) || block.is_empty());
        bad |= block.iter().fold(0, |bad, octet| bad | forbidden(*octet));
        body.extend(block.iter().map(|octet| octet.wrapping_sub(*key)));
    }
    if bad == 0 { Ok(()) } else { Err(MALFORMED) }
}
