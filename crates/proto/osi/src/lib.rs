//! osi
#![cfg_attr(
    not(test),
    warn(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation
    )
)]

pub mod acse;
pub mod association;
pub mod ber;
mod limits;
mod pieces;
pub mod presentation;
pub mod rtse;
pub mod session;
#[cfg(test)]
mod testing;
pub mod transport;

pub use limits::Limits;
pub use pieces::Pieces;
