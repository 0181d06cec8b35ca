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
/// Octets of a block with its key.
const CODED: usize = BLOCK + 1;
/// Blocks of a line.
const BLOCKS: usize = 12;
/// Octets of a line's text, without CRLF.
const LINE: usize = CODED * BLOCKS;

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

/// Octets that a loop tells apart at once: a block has five times as many, and compilers turn such loops into vector code.
const LANE: usize = 16;

/// 1 for an octet that a text must not have, else 0: a number, so that loops over blocks need no branch.
#[inline]
const fn forbidden(octet: u8) -> u8 {
    (octet == 0) as u8 | (octet == b'\n') as u8 | (octet == b'\r') as u8
}

/// Whether an octet of a block is forbidden, after `change`.
#[inline]
fn any_forbidden(block: &[u8; BLOCK], change: impl Fn(u8) -> u8) -> bool {
    let (lanes, _) = block.as_chunks::<LANE>();
    let mut bad = [0; LANE];
    for lane in lanes {
        for (bad, octet) in bad.iter_mut().zip(lane) {
            *bad |= forbidden(change(*octet));
        }
    }
    bad != [0; LANE]
}

/// Appends the text of a body.
pub(super) fn encode(body: &[u8], text: &mut Vec<u8>) {
    for line in body.chunks(BLOCK.saturating_mul(BLOCKS)) {
        let (blocks, rest) = line.as_chunks::<BLOCK>();
        let from = text.len();
        text.resize(from.saturating_add(blocks.len().saturating_mul(CODED)), 0);
        let coded = text.get_mut(from..).unwrap_or_default();
        let (coded, _) = coded.as_chunks_mut::<CODED>();
        let last = blocks.len().checked_sub(1).filter(|_| rest.is_empty());
        for (number, (block, coded)) in blocks.iter().zip(coded).enumerate() {
            encode_block(block, Some(number) == last, coded);
        }
        encode_rest(rest, text);
        text.extend_from_slice(CRLF);
    }
}

fn encode_block(block: &[u8; BLOCK], ends_line: bool, coded: &mut [u8; CODED]) {
    let [.., last] = *block;
    let fits = |key: u8| {
        let blank_ends_line = ends_line && is_blank(last.wrapping_add(key));
        is_key(key) && !blank_ends_line && !any_forbidden(block, |octet| octet.wrapping_add(key))
    };
    if let Some(key) = (1..=u8::MAX).find(|key| fits(*key)) {
        let [first, shifted @ ..] = coded;
        *first = key;
        for (to, from) in shifted.iter_mut().zip(block) {
            *to = from.wrapping_add(key);
        }
    }
}

/// The last block of a body, if shorter.
fn encode_rest(rest: &[u8], text: &mut Vec<u8>) {
    let Some(last) = rest.last() else { return };
    let fits = |key: u8| {
        let mut shifted = rest.iter().map(|octet| octet.wrapping_add(key));
        is_key(key)
            && shifted.all(|octet| forbidden(octet) == 0)
            && !is_blank(last.wrapping_add(key))
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

/// Appends the octets of a line, or of a part of one that begins with a block. After an error the body has useless octets more.
pub(super) fn decode_line(line: &[u8], body: &mut Vec<u8>) -> Result<(), FormatError> {
    let (blocks, rest) = line.as_chunks::<CODED>();
    let from = body.len();
    body.resize(from.saturating_add(blocks.len().saturating_mul(BLOCK)), 0);
    let plain = body.get_mut(from..).unwrap_or_default();
    let (plain, _) = plain.as_chunks_mut::<BLOCK>();
    let mut bad = false;
    for ([key, block @ ..], plain) in blocks.iter().zip(plain) {
        for (to, from) in plain.iter_mut().zip(block) {
            *to = from.wrapping_sub(*key);
        }
        bad |= !is_key(*key) || any_forbidden(block, |octet| octet);
    }
    if let Some((key, block)) = rest.split_first() {
        bad |= !is_key(*key) || block.is_empty();
        bad |= block.iter().any(|octet| forbidden(*octet) != 0);
        body.extend(block.iter().map(|octet| octet.wrapping_sub(*key)));
    }
    if bad { Err(MALFORMED) } else { Ok(()) }
}
