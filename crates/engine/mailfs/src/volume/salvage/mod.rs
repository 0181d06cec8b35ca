//! Content without names: where log or pages are beyond use, the indexes of packs and commits still tell which octets belong to
//! which inode. A [`Salvage`] reads every mail with content; [`Volume::salvage`](super::Volume::salvage) puts the files into a folder `lost+found`.

mod found;
mod frames;
mod place;
mod read;

pub use found::{SalvageReport, Salvaged};
pub use place::{Placed, lost_writer};
pub use read::{Salvage, SalvageStep};
