//! What the log's two threads share its state by. `tests/models.rs` builds the modules that use this
//! with primitives that try every order of events instead.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::mpsc::{Receiver, Sender};
pub(super) use std::sync::{Arc, Mutex, MutexGuard};
