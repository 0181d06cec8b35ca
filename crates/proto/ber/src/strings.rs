//! Character strings, kept as their octets: peers send characters outside the alphabet of the type, and an MTA
//! passes such characters on.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::element::Element;
use super::error::BerError;
use super::t61;
use super::tag::Tag;
use super::value::Value;
use super::writer::Writer;

/// A character outside a string type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected characters of {kind}; found {found:?}")]
pub struct StringError {
    /// The type.
    pub kind: &'static str,
    /// The first other character.
    pub found: char,
}

/// The text of octets of ISO 8859-1.
fn latin(octets: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(octets) {
        Ok(text) if text.is_ascii() => Cow::Borrowed(text),
        _ => octets.iter().map(|octet| char::from(*octet)).collect(),
    }
}

fn ascii(text: &str) -> Option<Vec<u8>> {
    text.is_ascii().then(|| text.as_bytes().to_vec())
}

/// Whether PrintableString has the character (X.680 table 10).
#[must_use]
pub const fn is_printable(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(
            character,
            ' ' | '\'' | '(' | ')' | '+' | ',' | '-' | '.' | '/' | ':' | '=' | '?'
        )
}

const fn is_numeric(character: char) -> bool {
    character.is_ascii_digit() || character == ' '
}

const fn is_ia5(character: char) -> bool {
    character.is_ascii()
}

macro_rules! string {
    ($(#[$meta:meta])* $name:ident, $tag:expr, $has:path, $encode:path, $text:path) => {
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Bytes);

        impl $name {
            /// The string of this text.
            ///
            /// # Errors
            /// [`StringError`] for the first character outside the type.
            pub fn new(text: &str) -> Result<Self, StringError> {
                let kind = stringify!($name);
                if let Some(found) = text.chars().find(|character| !$has(*character)) {
                    return Err(StringError { kind, found });
                }
                let found = char::REPLACEMENT_CHARACTER;
                $encode(text).map(|octets| Self(octets.into())).ok_or(StringError { kind, found })
            }

            /// The string of these octets, without a check.
            #[must_use]
            pub const fn from_octets(octets: Bytes) -> Self {
                Self(octets)
            }

            /// The octets.
            #[must_use]
            pub const fn octets(&self) -> &Bytes {
                &self.0
            }

            /// The text.
            #[must_use]
            pub fn text(&self) -> Cow<'_, str> {
                $text(&self.0)
            }

            /// Whether the string has no characters.
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// Whether the type has all characters.
            #[must_use]
            pub fn is_valid(&self) -> bool {
                self.text().chars().all($has)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{:?}", self.text())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.text())
            }
        }

        impl Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: Tag) -> bool {
                tag == $tag
            }

            fn read(element: &Element<'_>) -> Result<Self, BerError> {
                Ok(Self(element.bytes()?))
            }

            fn write(&self, out: &mut Writer) {
                self.write_tagged($tag, out);
            }

            fn write_tagged(&self, tag: Tag, out: &mut Writer) {
                out.primitive(tag, &self.0);
            }
        }
    };
}

string!(
    /// PrintableString.
    PrintableString, Tag::PRINTABLE_STRING, is_printable, ascii, latin
);
string!(
    /// NumericString.
    NumericString, Tag::NUMERIC_STRING, is_numeric, ascii, latin
);
string!(
    /// IA5String.
    Ia5String, Tag::IA5_STRING, is_ia5, ascii, latin
);
string!(
    /// TeletexString: the characters of T.61, without escape sequences.
    TeletexString, Tag::TELETEX_STRING, t61::has, t61::encode, t61::text
);
string!(
    /// GeneralString. [`Self::text`] reads ISO 8859-1.
    GeneralString, Tag::GENERAL_STRING, is_latin, latin_octets, latin
);
string!(
    /// BMPString.
    BmpString, Tag::BMP_STRING, is_bmp, bmp_octets, bmp_text
);
string!(
    /// UniversalString.
    UniversalString, Tag::UNIVERSAL_STRING, is_any, universal_octets, universal_text
);

fn is_latin(character: char) -> bool {
    u8::try_from(character).is_ok()
}

fn latin_octets(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(character).ok())
        .collect()
}

fn is_bmp(character: char) -> bool {
    u16::try_from(u32::from(character)).is_ok()
}

fn bmp_octets(text: &str) -> Option<Vec<u8>> {
    Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect())
}

/// The text; octets that are no character give a replacement character.
fn bmp_text(octets: &[u8]) -> Cow<'_, str> {
    let (pairs, rest) = octets.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    let mut text: String = char::decode_utf16(units)
        .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text.into()
}

const fn is_any(_: char) -> bool {
    true
}

fn universal_octets(text: &str) -> Option<Vec<u8>> {
    Some(
        text.chars()
            .flat_map(|character| u32::from(character).to_be_bytes())
            .collect(),
    )
}

fn universal_text(octets: &[u8]) -> Cow<'_, str> {
    let (quads, rest) = octets.as_chunks::<4>();
    let character = |quad: &[u8; 4]| char::from_u32(u32::from_be_bytes(*quad));
    let mut text: String = quads
        .iter()
        .map(|quad| character(quad).unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text.into()
}
