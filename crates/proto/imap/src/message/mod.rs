//! A message as IMAP sees it: header fields, parts, envelope, structure, sections.
//!
//! A message is octets, and stays them: what is broken is shown as it is, nothing is refused, and time
//! and memory are linear in its length.
//!
//! ```
//! use vere_imap::message::{Structure, body_structure};
//!
//! let message = b"Subject: x\r\n\r\nhello\r\n";
//! let mut out = Vec::new();
//! body_structure(message, &Structure::of(message), false, &mut out);
//! assert_eq!(out, b"(\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 7 1)");
//! ```

pub mod address;
pub mod header;
pub mod transfer;
pub mod value;

mod render;
mod section;
mod structure;

pub use render::{body_structure, envelope};
pub use section::{Extract, UnknownEncoding, binary, extract, header_fields};
pub use structure::{DEPTH_MAX, Kind, PARTS_MAX, Part, Structure};

#[cfg(test)]
mod tests;
