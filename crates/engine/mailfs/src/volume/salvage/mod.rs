//! The findings of a [`Salvage`] come back as files: [`Volume::salvage`](super::Volume::salvage) puts names and content into the
//! tree.

mod place;

pub use vere_inventory::salvage::{
    Count, Past, Placed, Salvage, SalvageReport, SalvageStep, Salvaged, begun_writer, lost_writer,
};
