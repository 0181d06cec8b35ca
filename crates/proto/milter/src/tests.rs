//! The machine against filters made of octets, and changes applied to messages.

mod applied;
mod talk;
