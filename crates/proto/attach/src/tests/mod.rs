//! Scripts of frames: what each side may say when, and what hostile sides get.

mod bounds;
mod client;
mod faults;
mod pair;
mod property;
mod script;
mod server;
