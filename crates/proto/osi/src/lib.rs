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
pub mod ber;
mod pieces;
pub mod presentation;
pub mod rtse;
pub mod session;
#[cfg(test)]
mod testing;
pub mod transport;

pub use pieces::Pieces;
