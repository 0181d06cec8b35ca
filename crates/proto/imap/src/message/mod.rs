//! A message as IMAP shows it: envelope, structure, sections, out of what was found in it when it was
//! delivered.
//!
//! A message is octets, and stays them: what is broken is shown as it is, nothing is refused.
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
