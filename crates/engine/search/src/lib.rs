//! The index of a mailbox's texts: which messages hold a substring.
//!
//! A text, in the form in which it is compared (`i;unicode-casemap`), is cut into *runs*: letters and
//! digits on the one hand, what stands between them on the other. A [`Segment`] has the runs of some
//! messages of one mailbox, each kind of text ([`vere_mime::Zone`]) for itself, and for each run the
//! messages it is in. What is looked for and lies within one run, however short, is found by looking
//! through the runs, and nothing else has to be read, and so it is with three octets of any runs; what is
//! longer and spans several gives candidates, whose texts the caller looks into. Runs too long to be kept
//! leave a signature of their grams.
//! `docs/internals/search.md` explains it and draws the file.
//!
//! Beside that a segment has of each message the fields of its header that clients ask for
//! ([`SUMMARY_FIELDS`]), so that a list of messages needs no message.
//!
//! An [`Index`] is a directory of segments. It says of every message whether a segment knows it;
//! what none knows the caller reads. So the index may lag behind, be damaged or be gone, and nothing
//! is missing. Segments are made by [`Builder`] and joined by [`merge`].

mod build;
mod codec;
mod crossings;
mod document;
mod edges;
mod error;
mod file;
mod format;
mod found;
mod gist;
mod index;
mod kept;
mod long;
mod memory;
mod merge;
mod runs;
mod segment;
mod summary;
mod words;
mod write;

pub use build::Builder;
pub use document::Document;
pub use error::SearchError;
pub use found::{Bits, Found};
pub use gist::Shelf;
pub use index::{Files, Index, Replaced, Task, Written};
pub use merge::merge;
pub use runs::Needle;
pub use segment::Segment;
pub use summary::{
    SUMMARIES_TOGETHER, SUMMARY_FIELDS, SUMMARY_OCTETS_MAX, Summaries, is_summarized,
};

/// The longest run that is kept as it is, in octets.
pub const RUN_OCTETS_MAX: usize = 40;
/// The most messages of a segment.
pub const DOCUMENTS_MAX: usize = 32 * 1024;
/// The most octets of a segment that others are joined with.
const JOINED_OCTETS_MAX: u64 = 64 * 1024 * 1024;
/// The most octets of text of a message that are kept; one with more is always a candidate.
pub const MESSAGE_OCTETS_MAX: usize = 16 * 1024 * 1024;
/// Octets of text after which a segment that is being built is full.
pub const BUILD_OCTETS_MAX: usize = 16 * 1024 * 1024;
/// Messages after which a segment that is being built is full.
pub const BUILD_DOCUMENTS_MAX: usize = 2 * 1024;
/// Octets that are kept of messages taken apart, for other mailboxes that they are in.
const SHELF_OCTETS_MAX: usize = 32 * 1024 * 1024;
/// Segments of a size that are joined to one.
const JOINED: usize = 6;
/// Mailboxes whose segments are kept open.
const OPEN_MAX: usize = 256;

#[cfg(test)]
mod tests;
