//! Content and names where the log is beyond use. The indexes of packs and commits tell the inode of each frame, and
//! surviving pages tell names. A [`Salvage`] reads every mail with content or pages, and tells what is [`Salvaged`].

mod again;
mod choice;
mod found;
mod frames;
mod lost;
mod mark;
mod needed;
mod pages;
mod past;
mod place;
mod read;
mod restore;
#[cfg(test)]
mod tests;

pub use self::found::{Chunk, Hint, KnownRow, SalvageReport, Salvaged};
pub use self::frames::Frame;
pub use self::lost::{LostFiles, new_file};
pub use self::mark::{begun, begun_writer, lost_writer};
pub use self::past::{Past, RowSight};
pub use self::place::{FOLDER, Placed, Targets, folder_rows, free_name, pack_rows, salvage_ends};
pub use self::read::{Salvage, SalvageStep};
pub use self::restore::{Count, Folder, Homes, IsWanted, Restore, Restored};
