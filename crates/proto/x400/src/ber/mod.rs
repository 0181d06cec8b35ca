//! BER (X.690), reader and writer.
//!
//! Peers send every form BER allows: indefinite lengths, long lengths for short values, strings in segments,
//! the elements of a SET in any order, unknown elements. [`decode`] accepts all these forms: a first pass
//! without recursion ([`normalise`]) turns indefinite lengths into definite lengths and bounds depth and number
//! of values, then each type reads the known elements and keeps the rest as [`Unknown`]. [`encode`] writes
//! definite lengths in their shortest form.
//!
//! Why the types are not derived with `rasn` 0.30: its decoder refuses a SET with an unknown element, refuses a
//! SET in which an element with a DEFAULT is absent, and refuses a whole message for one character outside the
//! alphabet of PrintableString or for one unlisted value of an ENUMERATED, and keeps a SET OF without its
//! order. An MTA has to pass such messages on unchanged. The derived code also switches off lints against a
//! `forbid` of this workspace.

mod bits;
mod bounds;
mod code;
mod definite;
mod element;
mod error;
mod header;
mod oid;
mod record;
mod strings;
mod t61;
mod tag;
mod value;
mod writer;

use bytes::Bytes;

pub(crate) use bits::bits;
pub use bits::{BITS_MAX, BitSet};
pub use bounds::{DEPTH_MAX, ELEMENTS_MAX, VALUES_MAX};
pub(crate) use code::codes;
pub use definite::normalise;
pub(crate) use definite::segments;
pub use element::{Children, Element};
pub use error::{BerError, Fault};
pub(crate) use header::{END_OF_CONTENTS, Header, extent};
pub use oid::{ObjectIdentifier, ObjectIdentifierError};
pub(crate) use record::{alias, choice, list, record, unless_default};
pub use strings::{
    BmpString, GeneralString, Ia5String, NumericString, PrintableString, StringError,
    TeletexString, UniversalString,
};
pub use tag::{Class, Tag};
pub use value::{Any, Explicit, Kept, Null, Unknown, Value};
pub use writer::Writer;

/// Decodes the value of all `octets`.
///
/// # Errors
/// [`BerError`] says which element of the value is wrong.
pub fn decode<T: Value>(octets: &Bytes) -> Result<T, BerError> {
    let octets = normalise(octets)?;
    let element = Element::only(&octets)?;
    if T::accepts(element.tag) {
        T::read(&element)
    } else {
        Err(BerError::unexpected(T::NAME, element.tag))
    }
}

/// Encodes a value.
pub fn encode<T: Value>(value: &T) -> Bytes {
    let mut writer = Writer::default();
    value.write(&mut writer);
    writer.finish()
}
