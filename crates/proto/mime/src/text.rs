//! The text of parts and fields: transfer encodings, charsets and encoded words undone.

use std::borrow::Cow;

use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::html::html_to_text;

use crate::header::unfold;
use crate::structure::{Part, PartKind};

mod decode;

pub use decode::{base64, encoded_words, quoted_printable};

/// The most octets of a part that a preview looks at.
const PREVIEW_OCTETS: usize = 16 * 1024;

/// Decodes octets in a charset; undecodable octets become U+FFFD. Without a charset, and with ASCII or
/// an unknown charset, the text is UTF-8 if all octets are valid UTF-8, else Windows-1252, the charset
/// of much old mail.
#[must_use]
pub fn in_charset(octets: &[u8], charset: Option<&[u8]>) -> String {
    // Most mail is ASCII and needs no decoding, whatever charset is declared.
    if let Some(text) = plain(octets, charset) {
        return text.to_owned();
    }
    let ascii = |charset: &&[u8]| {
        ASCII
            .iter()
            .any(|name| charset.trim_ascii().eq_ignore_ascii_case(name))
    };
    let named = charset.filter(|charset| !ascii(charset));
    let named = named.map(<[u8]>::trim_ascii);
    if let Some(decode) = named.and_then(charset_decoder) {
        return decode(octets);
    }
    let is_utf8 = |name: &[u8]| UTF8.iter().any(|own| name.eq_ignore_ascii_case(own));
    if named.is_some_and(is_utf8) {
        return String::from_utf8_lossy(octets).into_owned();
    }
    match std::str::from_utf8(octets) {
        Ok(text) => text.to_owned(),
        Err(_) => charset_decoder(b"windows-1252").map_or_else(
            || String::from_utf8_lossy(octets).into_owned(),
            |decode| decode(octets),
        ),
    }
}

/// ASCII octets in a charset that contains ASCII unchanged: the octets are the text.
pub(crate) fn plain<'a>(octets: &'a [u8], charset: Option<&[u8]>) -> Option<&'a str> {
    let is_plain = charset.is_none_or(has_ascii) && octets.is_ascii();
    is_plain.then(|| std::str::from_utf8(octets).ok())?
}

/// Whether each octet below 128 means the ASCII character in the charset; false for some charsets with
/// the same property.
fn has_ascii(charset: &[u8]) -> bool {
    let charset = charset.trim_ascii();
    HAVE_ASCII.iter().any(|beginning| {
        let own = charset.get(..beginning.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(beginning))
    })
}

/// Prefixes of the names of such charsets.
const HAVE_ASCII: [&[u8]; 5] = [
    b"us-ascii",
    b"utf-8",
    b"iso-8859-",
    b"windows-125",
    b"koi8-",
];

/// Names of UTF-8.
const UTF8: [&[u8]; 3] = [b"utf-8", b"utf8", b"unicode-1-1-utf-8"];

/// Names of ASCII, a charset without a meaning for octets from 128.
const ASCII: [&[u8]; 4] = [b"us-ascii", b"ascii", b"ansi_x3.4-1968", b"iso-ir-6"];

/// The body of a part after transfer decoding.
#[must_use]
pub fn decoded<'a>(part: &Part, body: &'a [u8]) -> Cow<'a, [u8]> {
    let encoding = part.encoding.as_deref().unwrap_or_default();
    if encoding.eq_ignore_ascii_case(b"base64") {
        base64(body).into()
    } else if encoding.eq_ignore_ascii_case(b"quoted-printable") {
        quoted_printable(body).into()
    } else {
        body.into()
    }
}

/// The text of a part with type `text`; `None` for any other type.
#[must_use]
pub fn of_part(part: &Part, body: &[u8]) -> Option<String> {
    let (kind, _) = part.media_type();
    if part.kind != PartKind::Single || !kind.eq_ignore_ascii_case(b"text") {
        return None;
    }
    Some(of_single(part, body))
}

/// The octets of a part as text, for any type.
pub(crate) fn of_single(part: &Part, body: &[u8]) -> String {
    in_charset(&decoded(part, body), charset_of(part))
}

fn charset_of(part: &Part) -> Option<&[u8]> {
    part.content_type.as_ref()?.parameter("charset")
}

/// The text of a part in ASCII without a transfer encoding.
pub(crate) fn plain_single<'a>(part: &Part, body: &'a [u8]) -> Option<&'a str> {
    (!part.is_encoded()).then(|| plain(body, charset_of(part)))?
}

/// The value of a field as text: unfolded, encoded words undone.
#[must_use]
pub fn of_field(value: &[u8]) -> String {
    encoded_words(&unfold(value))
}

/// The text of an ASCII field without encoded words.
pub(crate) fn plain_field(value: &[u8]) -> Option<String> {
    let unfolded = unfold(value);
    let is_plain = unfolded.is_ascii() && memchr::memmem::find(&unfolded, b"=?").is_none();
    is_plain.then(|| String::from_utf8(unfolded).ok())?
}

/// The beginning of the first text there is, blanks drawn together.
pub(crate) fn preview(message: &[u8], parts: &[Part], chars: usize) -> String {
    let attached = |part: &&Part| {
        let disposition = part.disposition.as_ref();
        disposition.is_some_and(|given| given.value.eq_ignore_ascii_case(b"attachment"))
    };
    let single = |part: &&Part| part.kind == PartKind::Single && !attached(part);
    let mut texts = parts.iter().filter(single);
    let plain = texts.clone().find(|part| part.is("text", "plain"));
    let Some(part) = plain.or_else(|| texts.find(|part| part.is("text", "html"))) else {
        return String::new();
    };
    let body = message.get(part.body.clone()).unwrap_or_default();
    let body = body.get(..PREVIEW_OCTETS).unwrap_or(body);
    let text = of_part(part, body).unwrap_or_default();
    let text = if part.is("text", "html") {
        html_to_text(&text)
    } else {
        text
    };
    let mut preview = String::new();
    for word in text.split_whitespace() {
        if preview.chars().count() >= chars {
            break;
        }
        if !preview.is_empty() {
            preview.push(' ');
        }
        preview.extend(word.chars().filter(|character| !character.is_control()));
    }
    preview.chars().take(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_that_have_ascii_leave_it_as_it_is() {
        let ascii: Vec<u8> = (0..128).collect();
        let text = String::from_utf8(ascii.clone()).unwrap();
        let mut names: Vec<String> = (1..=16).map(|n| format!("ISO-8859-{n}")).collect();
        names.extend((0..=9).map(|n| format!("windows-125{n}")));
        let others = [
            "us-ascii",
            "utf-8",
            "koi8-r",
            "koi8-u",
            "koi8-ru",
            "iso-8859-8-i",
        ];
        names.extend(others.map(str::to_owned));
        for name in &names {
            assert!(has_ascii(name.as_bytes()), "{name}");
            // A decoder that does not know the name leaves the text alone as well.
            if let Some(decode) = charset_decoder(name.as_bytes()) {
                assert_eq!(decode(&ascii), text, "{name}");
            }
            assert_eq!(in_charset(&ascii, Some(name.as_bytes())), text, "{name}");
        }
        for other in ["utf-7", "utf-16", "iso-2022-jp", "hz-gb-2312", ""] {
            assert!(!has_ascii(other.as_bytes()), "{other}");
        }
        assert_eq!(in_charset(b"+AOk-", Some(b"utf-7")), "\u{e9}");
    }
}
