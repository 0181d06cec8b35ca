//! Faults of octets as BER, and as BER of a type.

use std::fmt;

use super::bounds::{DEPTH_MAX, VALUES_MAX};
use super::tag::Tag;

/// A fault of octets, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BerError {
    /// The fields that contain the fault, outermost first.
    pub path: Vec<&'static str>,
    /// The fault.
    pub fault: Fault,
}

/// The fault itself, of the sender of the octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The octets, or the value around, end inside a value; the offset of that value.
    Truncated(usize),
    /// A tag number or a length above what this crate reads; the offset of the value.
    Oversized(usize),
    /// An indefinite length of a primitive value; the offset of the value.
    Indefinite(usize),
    /// Octets after the end of a value; their number.
    Trailing(usize),
    /// Values nested deeper than [`DEPTH_MAX`].
    Depth,
    /// More than [`VALUES_MAX`] values.
    Values,
    /// A value of another type.
    Unexpected {
        /// The expected type.
        expected: &'static str,
        /// The tag of the value.
        found: Tag,
    },
    /// A value with another tag than the expected one.
    Tag {
        /// The expected tag.
        expected: Tag,
        /// The tag of the value.
        found: Tag,
    },
    /// A field that must be present is absent.
    Missing(&'static str),
    /// A value with this tag must be present and is absent.
    Absent(Tag),
    /// A value with this tag where none belongs.
    Misplaced(Tag),
    /// A field occurs twice.
    Twice(&'static str),
    /// Wrong octets for the type; the expectation.
    Invalid(&'static str),
    /// More elements than the recommendation allows; the number allowed.
    Elements(usize),
}

impl BerError {
    /// A value of another type.
    #[must_use]
    pub const fn unexpected(expected: &'static str, found: Tag) -> Self {
        Self::new(Fault::Unexpected { expected, found })
    }

    /// Wrong octets for the type.
    #[must_use]
    pub const fn invalid(expected: &'static str) -> Self {
        Self::new(Fault::Invalid(expected))
    }

    /// A fault without a place.
    #[must_use]
    pub const fn new(fault: Fault) -> Self {
        let path = Vec::new();
        Self { path, fault }
    }

    /// The fault inside `field`.
    #[must_use]
    pub fn within(mut self, field: &'static str) -> Self {
        self.path.insert(0, field);
        self
    }
}

impl From<Fault> for BerError {
    fn from(fault: Fault) -> Self {
        Self::new(fault)
    }
}

impl From<BerError> for Fault {
    /// The fault without its place.
    fn from(error: BerError) -> Self {
        error.fault
    }
}

impl std::error::Error for BerError {}

impl std::error::Error for Fault {}

impl fmt::Display for BerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in &self.path {
            write!(out, "{field}: ")?;
        }
        self.fault.fmt(out)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(offset) => {
                write!(
                    out,
                    "expected a whole value at octet {offset}; found the end"
                )
            }
            Self::Oversized(offset) => {
                write!(out, "expected a shorter tag or length at octet {offset}")
            }
            Self::Indefinite(offset) => {
                write!(
                    out,
                    "expected a definite length at octet {offset}; found an indefinite one"
                )
            }
            Self::Trailing(count) => write!(out, "expected the end; found {count} more octets"),
            Self::Depth => write!(out, "expected values nested at most {} deep", DEPTH_MAX),
            Self::Values => write!(out, "expected at most {VALUES_MAX} values"),
            Self::Unexpected { expected, found } => {
                write!(out, "expected {expected}; found {found}")
            }
            Self::Tag { expected, found } => write!(out, "expected {expected}; found {found}"),
            Self::Missing(field) => write!(out, "expected {field}; found the end"),
            Self::Absent(tag) => write!(out, "expected {tag}; found the end"),
            Self::Misplaced(tag) => write!(out, "expected no {tag}; found one"),
            Self::Twice(field) => write!(out, "expected {field} once; found it twice"),
            Self::Invalid(expected) => write!(out, "expected {expected}; found other octets"),
            Self::Elements(most) => write!(out, "expected at most {most} elements; found more"),
        }
    }
}
