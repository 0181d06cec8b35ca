//! BER (X.690) as others send it: definite and indefinite lengths, long forms of lengths and tags,
//! constructed strings. Ours is definite, with the shortest lengths.
//!
//! [`Reader`] reads a value that is in memory as slices of it, [`Walker`] a value that arrives in pieces and
//! is never in memory as a whole. The functions of [`write`](mod@write) put a value together from pieces, so that a long
//! content stays where it is.

mod element;
mod error;
mod external;
mod header;
mod oid;
mod reader;
mod tag;
mod walker;
pub mod write;

pub use element::{BitString, Element};
pub use error::{BerError, NESTING_MAX};
pub use external::{Encoding, External};
pub use header::{Header, Length};
pub use oid::ObjectIdentifier;
pub use reader::Reader;
pub use tag::{Class, Tag};
pub use walker::{Step, Walker};

#[cfg(test)]
mod tests;
