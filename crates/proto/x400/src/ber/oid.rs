//! OBJECT IDENTIFIER.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::element::Element;
use super::error::BerError;
use super::tag::Tag;
use super::value::Value;
use super::writer::{Writer, push_base128};

/// The octets of an object identifier that are read.
const OCTETS_MAX: usize = 128;

/// An object identifier, kept as its contents octets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIdentifier(Bytes);

impl ObjectIdentifier {
    /// The object identifier with these contents octets.
    pub(crate) const fn from_static(contents: &'static [u8]) -> Self {
        Self(Bytes::from_static(contents))
    }

    /// The arcs; an arc that does not fit is the largest number.
    pub fn arcs(&self) -> Vec<u64> {
        let mut arcs = Vec::new();
        let mut arc: u64 = 0;
        for octet in &self.0 {
            arc = match arc.checked_mul(0x80) {
                Some(arc) => arc | u64::from(octet & 0x7F),
                None => u64::MAX,
            };
            if octet & 0x80 == 0 {
                if arcs.is_empty() {
                    let first = (arc / 40).min(2);
                    arcs.push(first);
                    arc = arc.saturating_sub(first.saturating_mul(40));
                }
                arcs.push(arc);
                arc = 0;
            }
        }
        arcs
    }
}

impl fmt::Display for ObjectIdentifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for arc in self.arcs() {
            write!(out, "{separator}{arc}")?;
            separator = ".";
        }
        Ok(())
    }
}

/// Text unlike `2.6.1.4.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an object identifier such as 2.6.1.4.0; found other text")]
pub struct ObjectIdentifierError;

impl FromStr for ObjectIdentifier {
    type Err = ObjectIdentifierError;

    /// Reads arcs below 2^32 with dots between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let arcs: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let arcs = arcs.map_err(|_| ObjectIdentifierError)?;
        let [first, second, rest @ ..] = arcs.as_slice() else {
            return Err(ObjectIdentifierError);
        };
        let joined = first
            .checked_mul(40)
            .and_then(|arc| arc.checked_add(*second));
        let joined = joined.filter(|_| *first == 2 || (*first < 2 && *second < 40));
        let mut contents = Vec::new();
        push_base128(&mut contents, joined.ok_or(ObjectIdentifierError)?);
        for arc in rest {
            push_base128(&mut contents, *arc);
        }
        Ok(Self(contents.into()))
    }
}

impl Value for ObjectIdentifier {
    const NAME: &'static str = "OBJECT IDENTIFIER";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::OBJECT_IDENTIFIER
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        let contents = element.primitive("OBJECT IDENTIFIER")?;
        let whole = contents.last().is_some_and(|octet| octet & 0x80 == 0);
        if !whole || contents.len() > OCTETS_MAX {
            return Err(BerError::invalid("an OBJECT IDENTIFIER of 1 to 128 octets"));
        }
        element.bytes().map(Self)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::OBJECT_IDENTIFIER, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, &self.0);
    }
}
