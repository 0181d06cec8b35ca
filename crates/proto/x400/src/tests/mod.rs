//! Tests of the whole crate.

mod address;
mod envelope;
mod hostile;
mod ipm;
mod judge;
mod sample;
mod time;
