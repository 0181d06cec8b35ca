//! The search index of all mailboxes, as searches and the indexing thread share it: segments, header fields kept in
//! memory, remembered verdicts, turns of searches, and notes of mailboxes to be indexed.

mod behind;
mod segments;
mod shared;
pub(crate) mod summaries;
mod turns;
mod verdicts;

pub(crate) use behind::{BEHIND_MAX, Indexer, MISSED_MAX, StaleIndex};
pub(crate) use segments::{Segments, beside};
pub(crate) use shared::{FOLDER, SharedIndex};
pub(crate) use turns::{Stop, Turn};
pub(crate) use verdicts::Verdicts;
