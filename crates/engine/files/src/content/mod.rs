//! Contents of files: which octets lie in chunks on the servers, which are still unsent, and where holes are.
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

mod chunks;
mod map;
mod piece;
mod stored;
#[cfg(test)]
mod tests;
mod unsent;

pub use chunks::{CHUNK_MAX, range_lengths, sequence_lengths};
pub use map::Content;
pub use piece::{Piece, Source, UnsentId};
pub use stored::{LoadError, allocated, load, save};
pub use unsent::{JOINED_OCTETS_MAX, Unsent};
