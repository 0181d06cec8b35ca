//! Elements of responses.

use crate::utf7;

/// Octets up to which a string is quoted; longer ones are literals.
const QUOTED_OCTETS_MAX: usize = 1_000;

/// Writes `string`: quoted where it can be, and else a literal.
pub(crate) fn string(out: &mut Vec<u8>, text: &[u8]) {
    let quotable =
        text.len() <= QUOTED_OCTETS_MAX && text.iter().all(|octet| matches!(octet, b' '..=b'~'));
    if quotable {
        quoted(out, text);
    } else {
        literal_head(out, text.len());
        // NUL may not stand in a literal (RFC 9051 section 9, CHAR8).
        out.extend(
            text.iter()
                .map(|octet| if *octet == 0 { 0x80 } else { *octet }),
        );
    }
}

/// Writes a quoted string of text without line ends.
pub(crate) fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for octet in text {
        if matches!(octet, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*octet);
    }
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
    out.extend_from_slice(format!("{{{octets}}}\r\n").as_bytes());
}

/// Writes the name of a mailbox: in UTF-8 to clients that enabled it, else in modified UTF-7.
pub(crate) fn mailbox(out: &mut Vec<u8>, name: &str, utf8: bool) {
    if utf8 && !name.chars().any(char::is_control) {
        quoted(out, name.as_bytes());
    } else {
        string(out, utf7::encode(name).as_bytes());
    }
}
