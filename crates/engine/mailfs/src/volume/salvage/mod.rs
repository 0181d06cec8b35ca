//! What a [`Salvage`] has found comes back as files: [`Volume::salvage`](super::Volume::salvage) puts names and content into the
//! tree.

mod place;

pub use place::Placed;
pub use vere_inventory::salvage::{
    Count, Past, Salvage, SalvageReport, SalvageStep, Salvaged, begun_writer, lost_writer,
};
