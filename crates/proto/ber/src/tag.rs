//! Tags (X.690 clause 8.1.2).

use std::fmt;

/// The class of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Types of X.680.
    Universal,
    /// `[APPLICATION n]`.
    Application,
    /// `[n]`.
    Context,
    /// `[PRIVATE n]`.
    Private,
}

/// The tag of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The class.
    pub class: Class,
    /// The number.
    pub number: u32,
}

impl Tag {
    /// BOOLEAN.
    pub const BOOLEAN: Self = Self::universal(1);
    /// INTEGER.
    pub const INTEGER: Self = Self::universal(2);
    /// BIT STRING.
    pub const BIT_STRING: Self = Self::universal(3);
    /// OCTET STRING.
    pub const OCTET_STRING: Self = Self::universal(4);
    /// NULL.
    pub const NULL: Self = Self::universal(5);
    /// OBJECT IDENTIFIER.
    pub const OBJECT_IDENTIFIER: Self = Self::universal(6);
    /// ObjectDescriptor.
    pub const OBJECT_DESCRIPTOR: Self = Self::universal(7);
    /// EXTERNAL and INSTANCE OF.
    pub const EXTERNAL: Self = Self::universal(8);
    /// ENUMERATED.
    pub const ENUMERATED: Self = Self::universal(10);
    /// SEQUENCE and SEQUENCE OF.
    pub const SEQUENCE: Self = Self::universal(16);
    /// SET and SET OF.
    pub const SET: Self = Self::universal(17);
    /// NumericString.
    pub const NUMERIC_STRING: Self = Self::universal(18);
    /// PrintableString.
    pub const PRINTABLE_STRING: Self = Self::universal(19);
    /// TeletexString, also called T61String.
    pub const TELETEX_STRING: Self = Self::universal(20);
    /// IA5String.
    pub const IA5_STRING: Self = Self::universal(22);
    /// UTCTime.
    pub const UTC_TIME: Self = Self::universal(23);
    /// GraphicString.
    pub const GRAPHIC_STRING: Self = Self::universal(25);
    /// GeneralString.
    pub const GENERAL_STRING: Self = Self::universal(27);
    /// UniversalString.
    pub const UNIVERSAL_STRING: Self = Self::universal(28);
    /// BMPString.
    pub const BMP_STRING: Self = Self::universal(30);

    /// A tag of class universal.
    #[must_use]
    pub const fn universal(number: u32) -> Self {
        let class = Class::Universal;
        Self { class, number }
    }

    /// `[APPLICATION number]`.
    #[must_use]
    pub const fn application(number: u32) -> Self {
        let class = Class::Application;
        Self { class, number }
    }

    /// `[number]`.
    #[must_use]
    pub const fn context(number: u32) -> Self {
        let class = Class::Context;
        Self { class, number }
    }

    const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::BOOLEAN => "BOOLEAN",
            Self::INTEGER => "INTEGER",
            Self::BIT_STRING => "BIT STRING",
            Self::OCTET_STRING => "OCTET STRING",
            Self::NULL => "NULL",
            Self::OBJECT_IDENTIFIER => "OBJECT IDENTIFIER",
            Self::OBJECT_DESCRIPTOR => "ObjectDescriptor",
            Self::EXTERNAL => "EXTERNAL",
            Self::ENUMERATED => "ENUMERATED",
            Self::SEQUENCE => "SEQUENCE",
            Self::SET => "SET",
            Self::NUMERIC_STRING => "NumericString",
            Self::PRINTABLE_STRING => "PrintableString",
            Self::TELETEX_STRING => "TeletexString",
            Self::IA5_STRING => "IA5String",
            Self::UTC_TIME => "UTCTime",
            Self::GRAPHIC_STRING => "GraphicString",
            Self::GENERAL_STRING => "GeneralString",
            Self::UNIVERSAL_STRING => "UniversalString",
            Self::BMP_STRING => "BMPString",
            _ => return None,
        })
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return out.write_str(name);
        }
        let number = self.number;
        match self.class {
            Class::Universal => write!(out, "[UNIVERSAL {number}]"),
            Class::Application => write!(out, "[APPLICATION {number}]"),
            Class::Context => write!(out, "[{number}]"),
            Class::Private => write!(out, "[PRIVATE {number}]"),
        }
    }
}
