//! Content and names where the log is beyond use. The indexes of packs and commits tell which octets belong to which inode, and
//! surviving pages tell names. A [`Salvage`] reads every mail with content or pages, and tells what is [`Salvaged`].

mod again;
mod choice;
mod found;
mod frames;
mod mark;
mod pages;
mod past;
mod read;
mod restore;
#[cfg(test)]
mod tests;

pub use self::found::{Chunk, Hint, KnownRow, SalvageReport, Salvaged};
pub use self::frames::Frame;
pub use self::mark::{begun, begun_writer, lost_writer};
pub use self::past::{Past, RowSight};
pub use self::read::{Salvage, SalvageStep};
pub use self::restore::{Count, Folder, Homes, IsWanted, Restore, Restored};
