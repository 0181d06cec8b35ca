//! OBJECT IDENTIFIER.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::element::Element;
use super::error::{BerError, Fault};
use super::header::put_base128;
use super::tag::Tag;
use super::value::Value;
use super::writer::Writer;

/// Octets of an object identifier, at most.
const OCTETS_MAX: usize = 128;

/// An object identifier, kept as its contents octets.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIdentifier(Bytes);

impl ObjectIdentifier {
    /// The object identifier with these arcs; `None` for fewer than two arcs and for a first or second arc that is too
    /// large.
    #[must_use]
    pub fn new(arcs: &[u32]) -> Option<Self> {
        let [first, second, rest @ ..] = arcs else {
            return None;
        };
        if *first > 2 || (*first < 2 && *second > 39) {
            return None;
        }
        let mut contents = Vec::new();
        put_base128(&mut contents, first.checked_mul(40)?.checked_add(*second)?);
        for arc in rest {
            put_base128(&mut contents, *arc);
        }
        Self::from_contents(contents.into()).ok()
    }

    /// The object identifier with these contents octets, without a check.
    #[must_use]
    pub const fn from_static(contents: &'static [u8]) -> Self {
        Self(Bytes::from_static(contents))
    }

    /// The object identifier with these contents octets.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for no octets, more than 128, and an arc without an end.
    pub fn from_contents(contents: Bytes) -> Result<Self, Fault> {
        let whole = contents.last().is_some_and(|octet| octet & 0x80 == 0);
        match whole && contents.len() <= OCTETS_MAX {
            true => Ok(Self(contents)),
            false => Err(Fault::Invalid("an OBJECT IDENTIFIER of 1 to 128 octets")),
        }
    }

    /// The contents octets.
    #[must_use]
    pub const fn contents(&self) -> &Bytes {
        &self.0
    }

    /// The arcs; an arc that does not fit is the largest number.
    #[must_use]
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

impl Element<'_> {
    /// The contents as an OBJECT IDENTIFIER.
    ///
    /// # Errors
    /// [`Fault::Invalid`] for octets that are no identifier.
    pub fn oid(&self) -> Result<ObjectIdentifier, Fault> {
        self.primitive("OBJECT IDENTIFIER")?;
        ObjectIdentifier::from_contents(self.contents_to_bytes())
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

impl fmt::Debug for ObjectIdentifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ObjectIdentifier({self})")
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
        Self::new(&arcs).ok_or(ObjectIdentifierError)
    }
}

impl Value for ObjectIdentifier {
    const NAME: &'static str = "OBJECT IDENTIFIER";

    fn accepts(tag: Tag) -> bool {
        tag == Tag::OBJECT_IDENTIFIER
    }

    fn read(element: &Element<'_>) -> Result<Self, BerError> {
        Ok(element.oid()?)
    }

    fn write(&self, out: &mut Writer) {
        self.write_tagged(Tag::OBJECT_IDENTIFIER, out);
    }

    fn write_tagged(&self, tag: Tag, out: &mut Writer) {
        out.primitive(tag, &self.0);
    }
}
