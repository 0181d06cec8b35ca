//! The operations beside a model, and the cases that a random run seldom meets.

mod cases;
mod model;
mod random;
mod rig;
mod sending;
