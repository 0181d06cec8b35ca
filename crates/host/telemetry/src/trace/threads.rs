//! The primitives of the buffer shared by the trace's threads. `tests/models.rs` builds the writer
//! with primitives that try every order of events instead.

pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
pub(super) use std::thread::{Builder, JoinHandle};
