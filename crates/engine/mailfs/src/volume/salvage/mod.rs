//! Content without names, found by a [`Salvage`]: [`Volume::salvage`](super::Volume::salvage) puts the files into a folder
//! `lost+found`.

mod place;

pub use place::{Placed, lost_writer};
pub use vere_inventory::salvage::{Salvage, SalvageReport, SalvageStep, Salvaged};
