//! The machine against filters made of octets, and changes applied to messages.

mod agreed;
mod applied;
mod talk;
