//! Contents of files: which octets lie in chunks on the servers, which are still unsent, and where holes are.

mod map;
mod piece;
mod stored;
mod unsent;

pub use map::Content;
pub use piece::{Piece, Source, UnsentId};
pub use stored::{LoadError, allocated, load, save};
pub use unsent::{JOINED_OCTETS_MAX, Unsent};
