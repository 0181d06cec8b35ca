//! Reports about messages and probes (X.411 clause 14.4, report generation; clause 12.2.1.3 for the fields).

mod due;
mod fate;
mod fields;
mod text;
mod write;

pub use fate::Fate;
pub(crate) use text::{identifier, printable};
