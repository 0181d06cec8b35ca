//! Body parts (X.420 clause 7.3).

use bytes::Bytes;
use vere_ber::{
    BerError, Class, Element, Encoding, External, GeneralString, Ia5String, ObjectIdentifier, Tag,
    Value, Writer, codes, decode, encode, record,
};

/// `id-et-general-text` and `id-ep-general-text`.
const GENERAL_TEXT_DATA: &[u8] = &[0x56, 0x01, 0x04, 0x0B];
const GENERAL_TEXT_PARAMETERS: &[u8] = &[0x56, 0x01, 0x0B, 0x0B];
/// Registrations of ISO 8859-1: C0 of ISO 646, ASCII, right half of Latin 1.
const LATIN_1: [u32; 3] = [1, 6, 100];
/// Designates the right half of Latin 1 as G1.
const LATIN_1_ESCAPE: &[u8] = &[0x1B, 0x2D, 0x41];
/// The tag of a body part of type `message`.
pub(super) const MESSAGE_TAG: u32 = 9;

codes! {
    /// `Repertoire`; the default is ia5.
    pub enum Repertoire [Tag::ENUMERATED] {
        Ita2 = 2, "ita2";
        Ia5 = 5, "ia5";
    }
}

record! {
    /// `IA5TextParameters`
    pub struct Ia5TextParameters [Tag::SET] {
        /// `repertoire`
        repertoire: optional @0 Repertoire,
    }
}

record! {
    /// `IA5TextBodyPart`
    pub struct Ia5TextBodyPart [Tag::SEQUENCE] {
        /// `parameters`
        parameters: required Ia5TextParameters,
        /// `data`
        data: required Ia5String,
    }
}

record! {
    /// `ExtendedBodyPart`: a body part whose type is an object identifier.
    pub struct ExtendedBodyPart [Tag::SEQUENCE] {
        /// `parameters`
        parameters: optional @0 External,
        /// `data`
        data: required External,
    }
}

/// `BodyPart`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BodyPart {
    /// `ia5-text`
    Ia5Text(Ia5TextBodyPart),
    /// `extended`
    Extended(ExtendedBodyPart),
    /// A body part of a further type, as received: number and octets.
    Other(u32, Bytes),
}

/// A character outside all text body parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected characters of ISO 8859-1; found {0:?}")]
pub struct BodyPartError(pub char);

impl BodyPart {
    /// The body part of a text whose lines end with CR LF: IA5 text if all characters are ASCII, else general text.
    ///
    /// # Errors
    /// [`BodyPartError`] for the first character that ISO 8859-1 does not have.
    pub fn text(text: &str) -> Result<Self, BodyPartError> {
        if let Ok(data) = Ia5String::new(text) {
            return Ok(Self::Ia5Text(Ia5TextBodyPart {
                data,
                ..Ia5TextBodyPart::default()
            }));
        }
        let data = GeneralString::new(text).map_err(|error| BodyPartError(error.found))?;
        let data = [LATIN_1_ESCAPE, data.octets()].concat();
        let data = encode(&GeneralString::from_octets(data.into()));
        let mut registrations = Writer::default();
        LATIN_1.to_vec().write_tagged(Tag::SET, &mut registrations);
        Ok(Self::Extended(ExtendedBodyPart {
            parameters: Some(named(GENERAL_TEXT_PARAMETERS, registrations.finish())),
            data: named(GENERAL_TEXT_DATA, data),
            ..ExtendedBodyPart::default()
        }))
    }

    /// The text, of IA5 text and of general text in ISO 8859-1.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        match self {
            Self::Ia5Text(part) => Some(part.data.text().into_owned()),
            Self::Extended(part) if part.is_general_text() => part.general_text().ok(),
            _ => None,
        }
    }

    /// The type: a name of X.420 or an object identifier.
    #[must_use]
    pub fn kind(&self) -> String {
        match self {
            Self::Ia5Text(_) => "ia5-text".into(),
            Self::Extended(part) if part.is_general_text() => "general-text".into(),
            Self::Extended(part) => part
                .data
                .direct_reference
                .as_ref()
                .map_or("extended".into(), ToString::to_string),
            Self::Other(number, _) => match number {
                3 => "g3-facsimile".into(),
                4 => "g4-class1".into(),
                5 => "teletex".into(),
                6 => "videotex".into(),
                7 => "nationally-defined".into(),
                8 => "encrypted".into(),
                &MESSAGE_TAG => "message".into(),
                11 => "mixed-mode".into(),
                14 => "bilaterally-defined".into(),
                number => format!("[{number}]"),
            },
        }
    }

    /// The number of octets of the encoded body part.
    #[must_use]
    pub fn octets(&self) -> usize {
        match self {
            Self::Other(_, octets) => octets.len(),
            part => encode(part).len(),
        }
    }
}

fn named(kind: &'static [u8], value: Bytes) -> External {
    External {
        direct_reference: Some(ObjectIdentifier::from_static(kind)),
        encoding: Encoding::of(value),
        ..External::default()
    }
}

impl ExtendedBodyPart {
    fn is_general_text(&self) -> bool {
        self.data.direct_reference == Some(ObjectIdentifier::from_static(GENERAL_TEXT_DATA))
    }

    /// The text, without the escape sequences that designate ASCII and Latin 1.
    fn general_text(&self) -> Result<String, BerError> {
        let Encoding::SingleAsn1(value) = &self.data.encoding else {
            return Err(BerError::invalid("a GeneralString"));
        };
        let data: GeneralString = decode(&value.0)?;
        let mut octets = Vec::with_capacity(data.octets().len());
        let mut rest: &[u8] = data.octets();
        while let [first, after @ ..] = rest {
            rest = after;
            if *first != 0x1B {
                octets.push(*first);
                continue;
            }
            // Intermediate octets, then the final octet.
            let intermediate = rest
                .iter()
                .take_while(|octet| (0x20..0x30).contains(*octet))
                .count();
            rest = rest
                .get(intermediate.saturating_add(1)..)
                .unwrap_or_default();
        }
        Ok(GeneralString::from_octets(octets.into())
            .text()
            .into_owned())
    }
}

impl Default for BodyPart {
    fn default() -> Self {
        Self::Ia5Text(Ia5TextBodyPart::default())
    }
}

impl Value for BodyPart {
    const NAME: &'static str = "BodyPart";

    fn accepts(tag: Tag) -> bool {
        tag.class == Class::Context
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        match element.tag.number {
            0 => Value::read_tagged(element).map(Self::Ia5Text),
            15 => Value::read_tagged(element).map(Self::Extended),
            number => Ok(Self::Other(number, element.to_bytes())),
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Self::Ia5Text(part) => part.write_tagged(Tag::context(0), out),
            Self::Extended(part) => part.write_tagged(Tag::context(15), out),
            Self::Other(_, octets) => out.raw(octets),
        }
    }

    fn read_tagged(element: &Element<'_>) -> Result<Self, BerError> {
        Self::read(&element.inner()?)
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.constructed(tag, |out| self.write(out));
    }
}
