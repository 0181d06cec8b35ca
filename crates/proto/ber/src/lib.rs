//! BER (X.690) as others send it, and as we write it, for the protocols of OSI.
//!
//! Peers send every form BER allows: indefinite lengths, long lengths for short values, strings in segments,
//! the elements of a SET in any order, unknown elements. Ours has definite lengths in their shortest form.
//!
//! | for | in | there are |
//! |---|---|---|
//! | a value in memory | slices of the octets | [`Reader`], [`Element`] |
//! | a value that arrives in pieces | pieces as they come, never the whole | [`Walker`] |
//! | types of ASN.1 | structures | [`Value`], [`decode`], [`encode`]; [`record!`], [`choice!`], [`list!`], [`alias!`], [`bits!`], [`codes!`] |
//! | writing | one buffer; pieces, so that a long content stays in its place | [`Writer`]; [`mod@write`], [`Pieces`] |
//!
//! [`decode`] accepts all forms: a first pass without recursion ([`normalise`]) turns indefinite lengths into
//! definite lengths and bounds depth and number of values, then each type reads the known elements and keeps the
//! rest as [`Unknown`].
//!
//! Errors: [`Fault`] of octets, and [`BerError`], a fault with the fields of a type around it.
//!
//! Why the types are not derived with `rasn` 0.30: its decoder refuses a SET with an unknown element, refuses a
//! SET in which an element with a DEFAULT is absent, and refuses a whole message for one character outside the
//! alphabet of PrintableString or for one unlisted value of an ENUMERATED, and keeps a SET OF without its
//! order. An MTA has to pass such messages on unchanged. The derived code also switches off lints against a
//! `forbid` of this workspace.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod bits;
mod bounds;
mod code;
mod definite;
mod element;
mod error;
mod external;
mod header;
mod oid;
mod pieces;
mod reader;
mod record;
mod strings;
mod t61;
mod tag;
mod value;
mod walker;
pub mod write;
mod writer;

#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use bits::{BITS_MAX, BitSet, BitString};
pub use bounds::{DEPTH_MAX, ELEMENTS_MAX, VALUES_MAX};
pub use definite::{normalise, segments};
pub use element::Element;
pub use error::{BerError, Fault};
pub use external::{Encoding, External};
pub use header::{END_OF_CONTENTS, Header, Length, extent};
pub use oid::{ObjectIdentifier, ObjectIdentifierError};
pub use pieces::Pieces;
pub use reader::Reader;
#[doc(hidden)]
pub use record::unless_default;
pub use strings::{
    BmpString, GeneralString, Ia5String, NumericString, PrintableString, StringError,
    TeletexString, UniversalString, is_printable,
};
pub use tag::{Class, Tag};
pub use value::{Any, Explicit, Kept, Null, Unknown, Value};
pub use walker::{Step, Walker};
pub use writer::Writer;

/// Decodes the value of all `octets`.
///
/// # Errors
/// [`BerError`] says which element of the value is wrong.
pub fn decode<T: Value>(octets: &Bytes) -> Result<T, BerError> {
    let octets = normalise(octets)?;
    Element::only(&octets)?.value()
}

/// Encodes a value.
pub fn encode<T: Value>(value: &T) -> Bytes {
    let mut writer = Writer::default();
    value.write(&mut writer);
    writer.finish()
}
