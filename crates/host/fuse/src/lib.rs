//! Mounts: calls of the kernel become [`vere_ports::files::Call`] and go to a [`Sink`]; replies go back by [`Replies`] from
//! any thread.
//!
//! A mount has two loops for calls, and a thread for invalidation. No thread of the crate waits for the engine.

mod adapter;
mod attach;
mod calls;
mod convert;
mod detach;
mod error;
mod invalidate;
mod mount;
mod negotiate;
mod options;
mod pending;
mod point;
mod sink;

pub use detach::{Strength, Unmounted, clear_dead, unmount};
pub use error::MountError;
pub use mount::{Ended, Mount};
pub use options::Options;
pub use pending::Replies;
pub use point::{Mounted, mounted_at};
pub use sink::{Refused, Sink};
