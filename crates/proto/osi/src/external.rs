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
use vere_ber::{BitString, Element, Fault, ObjectIdentifier, Pieces, Tag, write};

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
    pub(crate) fn read(element: &Element<'_>) -> Result<Self, Fault> {
        match element.tag {
            tag if tag == Tag::context(0) => Ok(Self::SingleAsn1Type(element.inner()?.to_bytes())),
            tag if tag == Tag::context(1) => Ok(Self::OctetAligned(element.bytes()?)),
            tag if tag == Tag::context(2) => Ok(Self::Arbitrary(element.bit_string()?)),
            other => Err(Fault::Misplaced(other)),
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
    /// [`Fault`] for another value than EXTERNAL.
    pub fn read(element: &Element<'_>) -> Result<Self, Fault> {
        if element.tag != Tag::EXTERNAL {
            return Err(Fault::Tag {
                expected: Tag::EXTERNAL,
                found: element.tag,
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

#[cfg(test)]
mod tests {
    use vere_ber::Reader;

    use super::*;
    use crate::names;
    use crate::testing::hex;

    #[test]
    fn external_is_read_back() {
        let external = External::of_context(5, hex("04 01 61"));
        let octets = external.write().into_bytes();
        assert_eq!(octets, hex("28 08 02 01 05 a0 03 04 01 61"));
        assert_eq!(
            External::read(&Reader::new(&octets).only().unwrap()).unwrap(),
            external
        );
        let other = hex("28 0f 06 03 883703 02 01 01 07 01 41 81 02 6162");
        let other = External::read(&Element::only(&other).unwrap()).unwrap();
        assert_eq!(other.encoding.value().unwrap(), &hex("6162"));
        assert_eq!(other.indirect_reference, Some(1));
    }

    #[test]
    fn names_are_those_of_the_recommendations() {
        assert_eq!(names::MTS_TRANSFER.to_string(), "2.6.0.1.6");
        assert_eq!(names::MTA_RTSE.to_string(), "2.6.0.2.12");
        assert_eq!(names::MTSE.to_string(), "2.6.0.2.7");
        assert_eq!(names::ACSE.to_string(), "2.2.1.0.1");
        assert_eq!(names::BASIC_ENCODING.to_string(), "2.1.1");
    }
}
