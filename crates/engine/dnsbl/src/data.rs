//! The data of a zone: files in the formats of rbldnsd(8), or lists of networks, and the sets made of them.
//!
//! [`Builder`] reads files line by line. [`ZoneData`] is immutable and answers questions about addresses and names; a
//! reload builds another and swaps it in.

mod addresses;
mod builder;
mod dataset;
mod error;
mod head;
mod index;
mod kind;
mod lines;
mod listing;
mod name;
mod names;
mod points;
mod reading;
mod records;
mod spans;
mod syntax4;
mod syntax6;
#[cfg(test)]
mod tests;
mod value;
mod zone;

pub use self::builder::Builder;
pub use self::error::{DataError, Reason};
pub use self::head::{Head, NameServers, Soa};
pub use self::kind::{Kind, UnknownKind};
pub use self::name::text as name_text;
pub use self::records::{Record, RecordData};
pub use self::value::{DEFAULT_ADDRESS, TEXT_MAX, Value};
pub use self::zone::ZoneData;
