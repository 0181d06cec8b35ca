//! Elements of responses.

use crate::utf7;

/// Octets up to which a string is quoted; a longer string is a literal.
const QUOTED_OCTETS_MAX: usize = 1_000;

/// Stands in literals where NUL would, which may not (RFC 9051 section 9, CHAR8).
pub(crate) const FOR_NUL: u8 = 0x80;

/// Writes `string`: quoted where it can be, and else a literal.
pub(crate) fn string(out: &mut Vec<u8>, text: &[u8]) {
    // All octets without an early exit: the compiler can compare many octets at a time.
    let plain = |all: bool, octet: &u8| all & (b' '..=b'~').contains(octet);
    if text.len() <= QUOTED_OCTETS_MAX && text.iter().fold(true, plain) {
        quoted(out, text);
    } else {
        literal_head(out, text.len());
        out.extend(
            text.iter()
                .map(|octet| if *octet == 0 { FOR_NUL } else { *octet }),
        );
    }
}

/// Writes a quoted string of text without line ends.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let (plain, special) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        out.extend_from_slice(plain);
        out.push(b'\\');
        out.extend(special.first());
        rest = special.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Writes `nstring`.
pub(crate) fn nstring(out: &mut Vec<u8>, text: Option<&[u8]>) {
    match text {
        Some(text) => string(out, text),
        None => out.extend_from_slice(b"NIL"),
    }
}

/// Writes the beginning of a literal.
pub(crate) fn literal_head(out: &mut Vec<u8>, octets: usize) {
    out.push(b'{');
    number(out, octets as u64);
    out.extend_from_slice(b"}\r\n");
}

/// Writes a number.
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut left, mut at) = (number, digits.len());
    loop {
        at = at.saturating_sub(1);
        let [digit, ..] = (left % 10).to_le_bytes();
        if let Some(place) = digits.get_mut(at) {
            *place = b'0' | digit;
        }
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// Writes the name of a mailbox: in UTF-8 for clients with IMAP4rev2 enabled, else in modified
/// UTF-7.
pub(crate) fn mailbox(out: &mut Vec<u8>, name: &str, utf8: bool) {
    if utf8 && !name.chars().any(char::is_control) {
        quoted(out, name.as_bytes());
    } else {
        string(out, utf7::encode(name).as_bytes());
    }
}
