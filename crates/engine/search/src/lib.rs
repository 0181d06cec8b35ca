//! The index of a mailbox's texts, which finds the messages that contain a substring.
//!
//! A text, in the form used for comparison (`i;unicode-casemap`), is cut into *runs*: runs of letters and
//! digits, and runs of the characters between. A [`Segment`] has the runs of some messages of a mailbox,
//! separately for each kind of text ([`vere_mime::Zone`]), and for each run the messages that contain the
//! run. A needle within a single run, however short, is found by searching the runs without any other
//! read, and so is a needle of three octets over several runs; a longer needle over several runs gives
//! candidates, whose texts the caller reads. Runs too long to be kept leave a signature of their grams.
//! `docs/internals/search.md` explains the index and draws the file.
//!
//! A segment also has the header fields of each message that clients request ([`SUMMARY_FIELDS`]), so
//! that a message list needs no message.
//!
//! An [`Index`] is a directory of segments. The index tells for every message whether a segment covers
//! the message; the caller reads messages without a segment. So the index may lag behind, be damaged or
//! be missing, and searches are still complete. Segments are made by [`Builder`] and joined by [`merge`].

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

/// The longest run kept as such, in octets.
pub const RUN_OCTETS_MAX: usize = 40;
/// The most messages of a segment.
pub const DOCUMENTS_MAX: usize = 32 * 1024;
/// The most octets of a segment that takes part in a join.
const JOINED_OCTETS_MAX: u64 = 64 * 1024 * 1024;
/// The most octets of text kept of a message; a message with more text is always a candidate.
pub const MESSAGE_OCTETS_MAX: usize = 16 * 1024 * 1024;
/// Octets of text after which a segment under construction is full.
pub const BUILD_OCTETS_MAX: usize = 16 * 1024 * 1024;
/// Messages after which a segment under construction is full.
pub const BUILD_DOCUMENTS_MAX: usize = 2 * 1024;
/// Octets of gists kept for other mailboxes with the same messages.
const SHELF_OCTETS_MAX: usize = 32 * 1024 * 1024;
/// Segments of similar size that are joined together.
const JOINED: usize = 6;
/// Mailboxes whose segments are kept open.
const OPEN_MAX: usize = 256;

#[cfg(test)]
mod tests;
