//! Tags (X.680 clause 8).

use std::fmt;

/// The class of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Types of X.680 itself.
    Universal,
    /// Types of one application.
    Application,
    /// Types with a meaning in their context.
    Context,
    /// Types of one organisation.
    Private,
}

/// A tag: class and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// EXTERNAL.
    pub const EXTERNAL: Self = Self::universal(8);
    /// SEQUENCE and SEQUENCE OF.
    pub const SEQUENCE: Self = Self::universal(16);
    /// SET and SET OF.
    pub const SET: Self = Self::universal(17);
    /// T61String.
    pub const T61_STRING: Self = Self::universal(20);
    /// UTCTime.
    pub const UTC_TIME: Self = Self::universal(23);
    /// GraphicString.
    pub const GRAPHIC_STRING: Self = Self::universal(25);

    /// A universal tag.
    #[must_use]
    pub const fn universal(number: u32) -> Self {
        let class = Class::Universal;
        Self { class, number }
    }

    /// An application tag.
    #[must_use]
    pub const fn application(number: u32) -> Self {
        let class = Class::Application;
        Self { class, number }
    }

    /// A context-specific tag.
    #[must_use]
    pub const fn context(number: u32) -> Self {
        let class = Class::Context;
        Self { class, number }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class {
            Class::Universal => write!(f, "[UNIVERSAL {}]", self.number),
            Class::Application => write!(f, "[APPLICATION {}]", self.number),
            Class::Context => write!(f, "[{}]", self.number),
            Class::Private => write!(f, "[PRIVATE {}]", self.number),
        }
    }
}
