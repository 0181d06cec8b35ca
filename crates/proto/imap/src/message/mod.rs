//! The IMAP view of a message: envelope, structure and sections, built from the parse at delivery.
//!
//! A message is never changed: malformed parts are shown as they are, and no message is refused.
//!
//! ```
//! use vere_imap::message::body_structure;
//! use vere_mime::Parsed;
//!
//! let parsed = Parsed::of(b"Subject: x\r\n\r\nhello\r\n");
//! let mut out = Vec::new();
//! body_structure(&parsed, false, &mut out);
//! assert_eq!(out, b"(\"text\" \"plain\" (\"charset\" \"us-ascii\") NIL NIL \"7bit\" 7 1)");
//! ```

mod render;
mod section;

pub use render::{body_structure, envelope};
pub use section::{Content, Extract, UnknownEncoding, header_fields, put_header_fields};

#[cfg(test)]
mod tests;
