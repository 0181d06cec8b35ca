//! Content without names: where log or pages are beyond use, the indexes of packs and commits still tell which octets belong to
//! which inode. A [`Salvage`] reads every mail with content, and tells what is [`Salvaged`].

mod found;
mod frames;
mod read;

pub use self::found::{Chunk, Hint, KnownRow, SalvageReport, Salvaged};
pub use self::frames::Frame;
pub use self::read::{Salvage, SalvageStep};
