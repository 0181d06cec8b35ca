//! BIT STRINGs: of any bits, and with named bits.
//!
//! In a [`BitSet`], bits beyond the named ones are kept. Trailing zero bits mean nothing (X.680 clause 22.7), so the
//! length is not kept; whole octets are written, at least one: some implementations refuse a shorter string, and X.411 asks for
//! at least 8 bits in per-recipient indicators.

use bytes::{Bytes, BytesMut};

use super::element::Element;
use super::error::{BerError, Fault};
use super::tag::Tag;
use super::value::Value;
use super::writer::Writer;

/// Bits of a string, at most, apart from zeros at the end. X.411 allows 32 bits in the decoded fields.
pub const BITS_MAX: usize = 64;

/// A string of bits, the first bit in the highest place of the first octet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BitString {
    /// Bits of the last octet that do not count: 0 to 7.
    pub unused: u8,
    /// The octets.
    pub octets: Bytes,
}

impl BitString {
    /// Whether this bit is set; bits behind the end are not.
    #[must_use]
    pub fn has(&self, bit: usize) -> bool {
        let octet = self.octets.get(bit / 8).copied().unwrap_or(0);
        octet & (0x80 >> (bit % 8)) != 0
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut contents = Vec::with_capacity(self.octets.len().saturating_add(1));
        contents.push(self.unused);
        contents.extend_from_slice(&self.octets);
        contents
    }
}

impl Value for BitString {
    const NAME: &'static str = "BIT STRING";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::BIT_STRING
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(element.bit_string()?)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::BIT_STRING, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, &self.contents());
    }
}

impl Element<'_> {
    /// The contents as a BIT STRING, whose segments are joined. Only the last segment may have unused bits.
    ///
    /// # Errors
    /// [`Fault`] of the segments.
    pub fn bit_string(&self) -> Result<BitString, Fault> {
        let mut octets = BytesMut::new();
        let mut unused = 0;
        for segment in self.segments() {
            if unused != 0 {
                return Err(Fault::Invalid("a BIT STRING of whole octets"));
            }
            let (bits, part) = segment_bits(segment?)?;
            octets.extend_from_slice(part);
            unused = bits;
        }
        Ok(BitString {
            unused,
            octets: octets.freeze(),
        })
    }
}

/// The number of unused bits, and the octets, of a segment.
const fn segment_bits(segment: &[u8]) -> Result<(u8, &[u8]), Fault> {
    let [unused, octets @ ..] = segment else {
        return Err(Fault::Invalid("a BIT STRING with contents"));
    };
    if *unused > 7 || (*unused > 0 && octets.is_empty()) {
        return Err(Fault::Invalid("a BIT STRING with at most 7 unused bits"));
    }
    Ok((*unused, octets))
}

/// A set of bits; bit 0 is the first of the string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct BitSet(u64);

impl BitSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set with this bit alone. Bits from [`BITS_MAX`] give the empty set.
    #[must_use]
    pub const fn bit(number: u32) -> Self {
        match 0x8000_0000_0000_0000_u64.checked_shr(number) {
            Some(bits) => Self(bits),
            None => Self(0),
        }
    }

    /// Whether no bit is set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The numbers of the bits that are set.
    pub fn numbers(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |number| self.contains(Self::bit(*number)))
    }

    /// Reads a BIT STRING.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for wrong segments and for bits from [`BITS_MAX`].
    pub fn read(element: &Element<'_>) -> Result<Self, Fault> {
        let mut bits = 0;
        let mut free = u64::BITS;
        for segment in element.segments() {
            let (unused, octets) = segment_bits(segment?)?;
            for octet in octets {
                match free.checked_sub(8) {
                    Some(shift) => {
                        free = shift;
                        bits |= u64::from(*octet) << shift;
                    }
                    None if *octet == 0 => {}
                    None => return Err(Fault::Invalid("a BIT STRING of at most 64 bits")),
                }
            }
            // Bits that the last octet does not use are not bits of the string.
            bits &= u64::MAX
                .checked_shl(free.saturating_add(u32::from(unused)))
                .unwrap_or_default();
        }
        Ok(Self(bits))
    }

    /// Writes a BIT STRING of whole octets under this tag.
    pub fn write(self, tag: Tag, out: &mut Writer) {
        let octets = self.0.to_be_bytes();
        let zeros = octets.iter().rev().take_while(|octet| **octet == 0).count();
        let count = octets.len().saturating_sub(zeros).max(1);
        let mut contents = Vec::with_capacity(9);
        contents.push(0);
        contents.extend(octets.iter().take(count));
        out.primitive(tag, &contents);
    }
}

/// Declares a BIT STRING with named bits.
#[macro_export]
macro_rules! bits {
    ($(#[$meta:meta])* pub struct $name:ident [$tag:expr] { $($bit:ident = $number:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $crate::BitSet);

        impl $name {
            $(
                #[doc = concat!("`", $text, "`")]
                pub const $bit: Self = Self($crate::BitSet::bit($number));
            )*

            /// Whether all bits of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0.contains(other.0)
            }

            /// Whether no bit is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0.is_empty()
            }

            /// The bits of both.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0.union(other.0))
            }

            /// The bits that are not in `other`.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0.difference(other.0))
            }

            /// The name of a bit in the recommendation.
            #[must_use]
            pub const fn bit_name(number: u32) -> Option<&'static str> {
                match number {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut separator = "";
                for number in self.0.numbers() {
                    match Self::bit_name(number) {
                        Some(name) => write!(out, "{separator}{name}")?,
                        None => write!(out, "{separator}bit {number}")?,
                    }
                    separator = ", ";
                }
                Ok(())
            }
        }

        impl $crate::Value for $name {
            const NAME: &'static str = stringify!($name);

            fn accepts(tag: $crate::Tag) -> bool {
                tag == $tag
            }

            fn read(element: &$crate::Element<'_>) -> Result<Self, $crate::BerError> {
                Ok(Self($crate::BitSet::read(element)?))
            }

            fn write(&self, out: &mut $crate::Writer) {
                self.0.write($tag, out);
            }

            fn write_tagged(&self, tag: $crate::Tag, out: &mut $crate::Writer) {
                self.0.write(tag, out);
            }
        }
    };
}
