//! Object identifiers (X.690 clause 8.19).

use std::fmt;

use bytes::Bytes;

use super::BerError;

/// The most octets of an identifier.
const OCTETS_MAX: usize = 128;

/// An object identifier, kept as its content octets.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ObjectIdentifier(Bytes);

impl ObjectIdentifier {
    /// ACSE version 1, abstract syntax: {2 2 1 0 1} (X.227).
    pub const ACSE: Self = Self(Bytes::from_static(&[0x52, 1, 0, 1]));
    /// The basic encoding of ASN.1, transfer syntax: {2 1 1} (X.690).
    pub const BASIC_ENCODING: Self = Self(Bytes::from_static(&[0x51, 1]));
    /// mts-transfer, application context: {2 6 0 1 6} (X.419).
    pub const MTS_TRANSFER: Self = Self(Bytes::from_static(&[0x56, 0, 1, 6]));
    /// id-as-mta-rtse, abstract syntax of MTABind and RTSE: {2 6 0 2 12} (X.419).
    pub const MTA_RTSE: Self = Self(Bytes::from_static(&[0x56, 0, 2, 12]));
    /// id-as-mtse, abstract syntax of the transfers: {2 6 0 2 7} (X.419).
    pub const MTSE: Self = Self(Bytes::from_static(&[0x56, 0, 2, 7]));

    /// An identifier of these arcs; `None` for fewer than two arcs or a first or second arc that is too large.
    #[must_use]
    pub fn new(arcs: &[u32]) -> Option<Self> {
        let (&first, rest) = arcs.split_first()?;
        let (&second, rest) = rest.split_first()?;
        if first > 2 || (first < 2 && second > 39) {
            return None;
        }
        let mut octets = Vec::new();
        put_arc(&mut octets, first.checked_mul(40)?.checked_add(second)?);
        for arc in rest {
            put_arc(&mut octets, *arc);
        }
        Self::from_content(&octets).ok()
    }

    /// An identifier of its content octets.
    ///
    /// # Errors
    ///
    /// [`BerError::Content`] for no octets, more than 128, an arc above 32 bits, and an arc that does not end.
    pub fn from_content(octets: &[u8]) -> Result<Self, BerError> {
        let wrong = BerError::Content("an object identifier");
        let ends = octets.last().is_some_and(|last| last & 0x80 == 0);
        let identifier = Self(Bytes::copy_from_slice(octets));
        match ends
            && octets.len() <= OCTETS_MAX
            && identifier.subidentifiers().all(|arc| arc.is_some())
        {
            true => Ok(identifier),
            false => Err(wrong),
        }
    }

    /// The content octets.
    #[must_use]
    pub const fn content(&self) -> &Bytes {
        &self.0
    }

    /// The arcs.
    #[must_use]
    pub fn arcs(&self) -> Vec<u32> {
        let mut arcs = Vec::new();
        for number in self.subidentifiers().flatten() {
            if arcs.is_empty() {
                let first = (number / 40).min(2);
                arcs.push(first);
                arcs.push(number.saturating_sub(first.saturating_mul(40)));
            } else {
                arcs.push(number);
            }
        }
        arcs
    }

    fn subidentifiers(&self) -> impl Iterator<Item = Option<u32>> {
        self.0
            .split_inclusive(|octet| octet & 0x80 == 0)
            .map(|octets| {
                octets.iter().try_fold(0_u32, |sum, octet| {
                    Some(sum.checked_mul(128)? | u32::from(octet & 0x7f))
                })
            })
    }
}

fn put_arc(to: &mut Vec<u8>, arc: u32) {
    for shift in [28, 21, 14, 7] {
        if arc >> shift != 0 {
            to.push(0x80 | (arc >> shift).to_le_bytes()[0] & 0x7f);
        }
    }
    to.push(arc.to_le_bytes()[0] & 0x7f);
}

impl fmt::Display for ObjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, arc) in self.arcs().iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            write!(f, "{arc}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ObjectIdentifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectIdentifier({self})")
    }
}
