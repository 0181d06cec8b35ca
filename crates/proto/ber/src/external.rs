//! EXTERNAL (X.690 clause 8.18): a value of another abstract syntax. INSTANCE OF is encoded alike.
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

use super::bits::BitString;
use super::oid::ObjectIdentifier;
use super::tag::Tag;
use super::value::Any;
use crate::{choice, record};

choice! {
    /// `encoding` of EXTERNAL, and of a list of presentation data values.
    pub enum Encoding {
        /// `single-ASN1-type`: one value, as sent.
        SingleAsn1: @0 Any,
        /// `octet-aligned`
        OctetAligned: @1 Bytes,
        /// `arbitrary`
        Arbitrary: @2 BitString,
    }
}

record! {
    /// `EXTERNAL`
    pub struct External [Tag::EXTERNAL] {
        /// `direct-reference`: the abstract syntax by name.
        direct_reference: optional ObjectIdentifier,
        /// `indirect-reference`: the presentation context.
        indirect_reference: optional i64,
        /// `encoding`
        encoding: required Encoding,
    }
}

impl Encoding {
    /// One value.
    #[must_use]
    pub const fn of(value: Bytes) -> Self {
        Self::SingleAsn1(Any(value))
    }

    /// The value inside, whether sent as one type or as octets.
    #[must_use]
    pub const fn value(&self) -> Option<&Bytes> {
        match self {
            Self::SingleAsn1(Any(value)) | Self::OctetAligned(value) => Some(value),
            Self::Arbitrary(_) => None,
        }
    }
}

impl External {
    /// One value of a presentation context.
    #[must_use]
    pub fn of_context(context: i64, value: Bytes) -> Self {
        Self {
            indirect_reference: Some(context),
            encoding: Encoding::of(value),
            ..Self::default()
        }
    }
}
