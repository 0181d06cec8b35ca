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

/// Octets in a charset as text; unknown charsets and none are taken for UTF-8, what does not fit is
/// replaced (U+FFFD).
#[must_use]
pub fn in_charset(octets: &[u8], charset: Option<&[u8]>) -> String {
    let decoder = charset.and_then(charset_decoder);
    match decoder {
        Some(decode) => decode(octets),
        None => String::from_utf8_lossy(octets).into_owned(),
    }
}

/// The octets that a part's body stands for.
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

/// The text of a part whose type is `text`; none for others.
#[must_use]
pub fn of_part(part: &Part, body: &[u8]) -> Option<String> {
    let (kind, _) = part.media_type();
    if part.kind != PartKind::Single || !kind.eq_ignore_ascii_case(b"text") {
        return None;
    }
    let charset = part
        .content_type
        .as_ref()
        .and_then(|given| given.parameter("charset"));
    Some(in_charset(&decoded(part, body), charset))
}

/// The value of a field as text: unfolded, encoded words undone, octets beyond ASCII taken for UTF-8.
#[must_use]
pub fn of_field(value: &[u8]) -> String {
    encoded_words(&unfold(value))
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
