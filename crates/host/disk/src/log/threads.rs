//! The primitives of the state shared between the log's two threads. `tests/models.rs` builds the
//! modules with primitives that try every order of events instead.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::mpsc::{Receiver, Sender};
pub(super) use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The `Arc` of the model checker has no such function.
pub(super) fn downgrade<T>(of: &Arc<T>) -> Weak<T> {
    Arc::downgrade(of)
}
