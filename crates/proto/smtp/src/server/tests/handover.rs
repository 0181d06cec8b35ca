//! Sessions that another process goes on with.

mod cases;
mod contradictions;
mod cut;
mod message;
mod random;
mod states;
mod wire;

pub(in crate::server) use cut::Cut;
pub(super) use cut::{behind_answer, between_steps};
