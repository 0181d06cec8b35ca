//! EXTERNAL (X.690 clause 8.18): a value of another abstract syntax.
//!
//! ```text
//! EXTERNAL ::= [UNIVERSAL 8] IMPLICIT SEQUENCE {
//!     direct-reference OBJECT IDENTIFIER OPTIONAL,
//!     indirect-reference INTEGER OPTIONAL,
//!     data-value-descriptor ObjectDescriptor OPTIONAL,
//!     encoding CHOICE {
//!         single-ASN1-type [0] ABSTRACT-SYNTAX.&Type,
//!         octet-aligned [1] IMPLICIT OCTET STRING,
//!         arbitrary [2] IMPLICIT BIT STRING } }
//! ```

use bytes::Bytes;

use super::{BerError, BitString, Element, ObjectIdentifier, Tag, write};
use crate::pieces::Pieces;

/// How the value within is encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// One BER value, as it was sent.
    SingleAsn1Type(Bytes),
    /// Octets.
    OctetAligned(Bytes),
    /// Bits.
    Arbitrary(BitString),
}

impl Encoding {
    /// Reads the choice of EXTERNAL, which is also that of a presentation data value list.
    pub(crate) fn read(element: &Element) -> Result<Self, BerError> {
        match element.tag() {
            tag if tag == Tag::context(0) => {
                Ok(Self::SingleAsn1Type(element.inner()?.whole().clone()))
            }
            tag if tag == Tag::context(1) => Ok(Self::OctetAligned(element.string()?)),
            tag if tag == Tag::context(2) => Ok(Self::Arbitrary(element.bit_string()?)),
            other => Err(BerError::Unexpected(other)),
        }
    }

    pub(crate) fn write(&self) -> Pieces {
        match self {
            Self::SingleAsn1Type(value) => {
                write::constructed(Tag::context(0), [write::encoded(value)])
            }
            Self::OctetAligned(octets) => {
                write::spliced(Tag::context(1), Pieces::from(octets.clone()))
            }
            Self::Arbitrary(bits) => write::bit_string(Tag::context(2), bits),
        }
    }

    /// The BER value within, whether it was sent as one type or as octets.
    #[must_use]
    pub const fn value(&self) -> Option<&Bytes> {
        match self {
            Self::SingleAsn1Type(value) | Self::OctetAligned(value) => Some(value),
            Self::Arbitrary(_) => None,
        }
    }
}

/// A value of another abstract syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct External {
    /// The abstract syntax by name.
    pub direct_reference: Option<ObjectIdentifier>,
    /// The presentation context.
    pub indirect_reference: Option<i64>,
    /// The value.
    pub encoding: Encoding,
}

impl External {
    /// One BER value of a presentation context.
    #[must_use]
    pub const fn of_context(context: i64, value: Bytes) -> Self {
        Self {
            direct_reference: None,
            indirect_reference: Some(context),
            encoding: Encoding::SingleAsn1Type(value),
        }
    }

    /// Reads the value.
    ///
    /// # Errors
    ///
    /// [`BerError`] for another value than EXTERNAL.
    pub fn read(element: &Element) -> Result<Self, BerError> {
        if element.tag() != Tag::EXTERNAL {
            return Err(BerError::Tag {
                expected: Tag::EXTERNAL,
                found: element.tag(),
            });
        }
        let mut fields = element.reader()?;
        let direct = fields.optional(Tag::OBJECT_IDENTIFIER)?;
        let indirect = fields.optional(Tag::INTEGER)?;
        fields.optional(Tag::OBJECT_DESCRIPTOR)?;
        let encoding = fields.only()?;
        Ok(Self {
            direct_reference: direct.map(|value| value.oid()).transpose()?,
            indirect_reference: indirect.map(|value| value.integer()).transpose()?,
            encoding: Encoding::read(&encoding)?,
        })
    }

    /// Writes the value.
    #[must_use]
    pub fn write(&self) -> Pieces {
        let direct = self
            .direct_reference
            .as_ref()
            .map(|name| write::oid(Tag::OBJECT_IDENTIFIER, name));
        let indirect = self
            .indirect_reference
            .map(|context| write::integer(Tag::INTEGER, context));
        let fields = [direct, indirect, Some(self.encoding.write())];
        write::constructed(Tag::EXTERNAL, fields.into_iter().flatten())
    }
}
