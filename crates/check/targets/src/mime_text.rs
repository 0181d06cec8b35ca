//! The text of parts and fields: transfer encodings, charsets, encoded words and HTML undone.

use std::fmt::Write as _;

use vere_mime::text::{base64, encoded_words, in_charset, quoted_printable};
use vere_mime::{Parsed, casemap};

use super::choice::choice;

/// The most octets of text per octet in any charset: a character of four octets, two of which come from one
/// octet in some old charsets, with space to spare.
const GROWTH: usize = 12;
/// The most characters of a preview (RFC 8970 section 3.1).
const PREVIEW_CHARS: usize = 200;

/// A field's value; quoted-printable; Base64; a charset, NUL and octets in the charset; HTML; text for
/// comparison.
pub(super) const SEEDS: &[&[u8]] = &[
    b"\0=?utf-8?Q?gr=C3=BC=C3?= =?UTF-8?b?n8OhIQ==?= a =?iso-2022-jp*en?B?GyRCJCI=?=",
    b"\x01a=20b \t\r\nsoft=\r\nline=3D=\r\n=C3=A",
    b"\x02aGVs bG8\r\n=\r\nlist@example",
    b"\x03iso-2022-jp\0\x1B$B$\"\x1B(J~\\\x1B(Bx\x1B$",
    b"\x03utf-16\0\xFE\xFFa\0\xD8\0",
    b"\x03utf-7\0+AOk-+2D3eAA-+",
    b"\x04<html><head><title>t</title><style>x</style></head><body>a&amp;&#228;&#xD800;<br>b<!-- c",
    b"\x05Gr\xC3\xBC\xC3\x9Fe \xC7\x86 \xE1\xBE\x80 \xEA\xB0\x80 a\xCC\xA7\xCC\x81",
];

/// Decodes octets by the method that the first octet selects.
pub(super) fn decode(octets: &[u8]) {
    let (choice, rest) = choice(octets);
    match choice % 6 {
        0 => words(rest),
        1 => quoted(rest),
        2 => digits(rest),
        3 => charset(rest),
        4 => html(rest),
        _ => compared(rest),
    }
}

/// Text without an encoded word is kept, and any text in an encoded word is decoded.
fn words(value: &[u8]) {
    let decoded = encoded_words(value);
    assert!(decoded.len() <= value.len() * GROWTH, "it grows");
    if !value.windows(2).any(|pair| pair == b"=?")
        && let Ok(plain) = std::str::from_utf8(value)
    {
        assert_eq!(decoded, plain);
    }
    // RFC 2047 allows 75 octets in all; the decoder accepts longer words.
    let text = String::from_utf8_lossy(&value[..value.len().min(100)]);
    let mut q = String::from("=?utf-8?q?");
    for octet in text.bytes() {
        let _ = write!(q, "={octet:02X}");
    }
    assert_eq!(encoded_words((q + "?=").as_bytes()), text);
    let b = format!("=?UTF-8?B?{}?=", base64_of(text.as_bytes()));
    assert_eq!(encoded_words(b.as_bytes()), text);
    // A character may span two encoded words.
    let (one, other) = text.as_bytes().split_at(text.len() / 2);
    let both = [one, other].map(|half| format!("=?utf-8?b?{}?=", base64_of(half)));
    assert_eq!(encoded_words(both.join(" \t").as_bytes()), text);
}

fn quoted(body: &[u8]) {
    assert!(quoted_printable(body).len() <= body.len(), "it grows");
    let mut encoded = String::new();
    for (at, octet) in body.iter().enumerate() {
        if at % 25 == 24 {
            encoded.push_str("=\r\n");
        }
        let _ = write!(encoded, "={octet:02x}");
    }
    assert_eq!(quoted_printable(encoded.as_bytes()), body);
}

fn digits(body: &[u8]) {
    assert!(base64(body).len() <= body.len() * 3 / 4, "it grows");
    let encoded = base64_of(body);
    assert_eq!(base64(encoded.as_bytes()), body);
    // Lines, and a mailing list's footer behind the end.
    let lines: Vec<&[u8]> = encoded.as_bytes().chunks(76).collect();
    let mut lines = lines.join(b"\r\n".as_slice());
    if encoded.ends_with('=') {
        lines.extend_from_slice(b"\r\n____\r\nlist");
    }
    assert_eq!(base64(&lines), body);
}

fn base64_of(octets: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in octets.chunks(3) {
        let bits = group
            .iter()
            .chain([0, 0].iter())
            .take(3)
            .fold(0_usize, |bits, octet| bits << 8 | usize::from(*octet));
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            text.push(match digit <= group.len() {
                true => char::from(ALPHABET[value]),
                false => '=',
            });
        }
    }
    text
}

fn charset(octets: &[u8]) {
    let name_len = octets.iter().position(|octet| *octet == 0);
    let (name, text) = octets.split_at(name_len.unwrap_or(0));
    let text = text.get(1..).unwrap_or_default();
    for named in [Some(name), None] {
        let decoded = in_charset(text, named);
        assert!(decoded.len() <= text.len() * GROWTH + GROWTH, "it grows");
        if named.is_none()
            && let Ok(plain) = std::str::from_utf8(text)
        {
            assert_eq!(decoded, plain);
        }
    }
}

/// HTML is read for previews alone.
fn html(text: &[u8]) {
    let message = [b"Content-Type: text/html; charset=utf-8\r\n\r\n", text].concat();
    let preview = Parsed::of(&message).preview;
    assert!(preview.chars().count() <= PREVIEW_CHARS);
    assert!(!preview.chars().any(char::is_control));
}

/// The form of a part of a text is a part of the form of the text: so something is found wherever it stands.
fn compared(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let folded = casemap(&text);
    assert!(folded.len() <= text.len() * GROWTH, "it grows");
    let middle = (0..=text.len() / 2).rfind(|at| text.is_char_boundary(*at));
    let (one, other) = text.split_at(middle.unwrap_or(0));
    assert_eq!(casemap(one) + &casemap(other), folded);
}
