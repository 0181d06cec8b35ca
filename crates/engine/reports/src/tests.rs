//! Tests of the crate by its surface.

mod archives;
mod hostile;
mod made;
mod observed;
mod real;
mod round_trip;
mod sums;
