//! Facts about the content (X.411 clause 8.2.1.1.1): type, encoded information types, priority, indicators.

use vere_ber::{ObjectIdentifier, PrintableString, Tag, alias, bits, choice, codes, record};

use std::fmt;
use std::str::FromStr;

codes! {
    /// `BuiltInContentType`
    pub enum BuiltInContentType [Tag::application(6)] {
        Unidentified = 0, "unidentified";
        External = 1, "external";
        InterpersonalMessaging1984 = 2, "interpersonal-messaging-1984";
        InterpersonalMessaging1988 = 22, "interpersonal-messaging-1988";
        EdiMessaging = 35, "edi-messaging";
        VoiceMessaging = 40, "voice-messaging";
    }
}

choice! {
    /// `ContentType`
    pub enum ContentType {
        /// `built-in`
        BuiltIn: BuiltInContentType,
        /// `extended`
        Extended: ObjectIdentifier,
    }
}

impl ContentType {
    /// Interpersonal messages of X.420 (1984), called P2.
    pub const P2: Self = Self::BuiltIn(BuiltInContentType::InterpersonalMessaging1984);
    /// Interpersonal messages of X.420 (1988) and later, called P22.
    pub const P22: Self = Self::BuiltIn(BuiltInContentType::InterpersonalMessaging1988);

    /// The number of a built-in type or the object identifier, as [`FromStr`] reads them.
    #[must_use]
    pub fn short(&self) -> String {
        match self {
            Self::BuiltIn(built_in) => built_in.code().to_string(),
            Self::Extended(identifier) => identifier.to_string(),
        }
    }
}

/// A fault of text as a content type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a content type: a number such as 22, p22, p2, or an object identifier such as 2.6.1.10.0; found {0:?}"
)]
pub struct ContentTypeError(pub String);

impl FromStr for ContentType {
    type Err = ContentTypeError;

    /// Reads a number of a built-in type, `p2`, `p22`, or an object identifier with at least two arcs.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || ContentTypeError(text.chars().take(64).collect());
        if let Ok(number) = text.parse() {
            return Ok(Self::BuiltIn(BuiltInContentType::from_code(number)));
        }
        match text {
            _ if text.eq_ignore_ascii_case("p2") => Ok(Self::P2),
            _ if text.eq_ignore_ascii_case("p22") => Ok(Self::P22),
            _ => text.parse().map(Self::Extended).map_err(|_| fault()),
        }
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(built_in) => built_in.fmt(out),
            Self::Extended(identifier) => identifier.fmt(out),
        }
    }
}

codes! {
    /// `Priority`: the grade of delivery.
    pub enum Priority [Tag::application(7)] {
        Normal = 0, "normal";
        NonUrgent = 1, "non-urgent";
        Urgent = 2, "urgent";
    }
}

bits! {
    /// `PerMessageIndicators`
    pub struct PerMessageIndicators [Tag::application(8)] {
        DISCLOSURE_OF_OTHER_RECIPIENTS = 0, "disclosure-of-other-recipients";
        IMPLICIT_CONVERSION_PROHIBITED = 1, "implicit-conversion-prohibited";
        ALTERNATE_RECIPIENT_ALLOWED = 2, "alternate-recipient-allowed";
        CONTENT_RETURN_REQUEST = 3, "content-return-request";
        RESERVED = 4, "reserved";
        BIT_5 = 5, "bit-5";
        BIT_6 = 6, "bit-6";
        SERVICE_MESSAGE = 7, "service-message";
    }
}

bits! {
    /// `BuiltInEncodedInformationTypes`
    pub struct BuiltInEncodedInformationTypes [Tag::BIT_STRING] {
        UNKNOWN = 0, "unknown";
        TELEX = 1, "telex";
        IA5_TEXT = 2, "ia5-text";
        G3_FACSIMILE = 3, "g3-facsimile";
        G4_CLASS_1 = 4, "g4-class-1";
        TELETEX = 5, "teletex";
        VIDEOTEX = 6, "videotex";
        VOICE = 7, "voice";
        SFD = 8, "sfd";
        MIXED_MODE = 9, "mixed-mode";
    }
}

record! {
    /// `EncodedInformationTypes`. The non-basic parameters are among the elements that are kept as received.
    pub struct EncodedInformationTypes [Tag::application(5)] {
        /// `built-in-encoded-information-types`
        built_in: required @0 BuiltInEncodedInformationTypes,
        /// `extended-encoded-information-types`
        extended: optional @4 Vec<ObjectIdentifier>,
    }
}

impl EncodedInformationTypes {
    /// These built-in types.
    #[must_use]
    pub fn built_in(built_in: BuiltInEncodedInformationTypes) -> Self {
        Self {
            built_in,
            ..Self::default()
        }
    }
}

impl fmt::Display for EncodedInformationTypes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.built_in.fmt(out)?;
        let mut separator = if self.built_in.is_empty() { "" } else { ", " };
        for identifier in self.extended.iter().flatten() {
            write!(out, "{separator}{identifier}")?;
            separator = ", ";
        }
        Ok(())
    }
}

alias! {
    /// `ContentIdentifier`: text of the originator, repeated in reports; at most 16 characters.
    pub struct ContentIdentifier [Tag::application(10)] PrintableString
}

codes! {
    /// `ExplicitConversion`
    pub enum ExplicitConversion [Tag::INTEGER] {
        Ia5TextToTeletex = 0, "ia5-text-to-teletex";
        Ia5TextToG3Facsimile = 8, "ia5-text-to-g3-facsimile";
        Ia5TextToG4Class1 = 9, "ia5-text-to-g4-class-1";
        Ia5TextToVideotex = 10, "ia5-text-to-videotex";
        TeletexToIa5Text = 11, "teletex-to-ia5-text";
        TeletexToG3Facsimile = 12, "teletex-to-g3-facsimile";
        TeletexToG4Class1 = 13, "teletex-to-g4-class-1";
        TeletexToVideotex = 14, "teletex-to-videotex";
        VideotexToIa5Text = 16, "videotex-to-ia5-text";
        VideotexToTeletex = 17, "videotex-to-teletex";
    }
}
