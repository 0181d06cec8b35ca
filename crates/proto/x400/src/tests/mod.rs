//! Tests of the whole crate.

mod address;
mod ber;
mod envelope;
mod hostile;
mod ipm;
mod sample;
