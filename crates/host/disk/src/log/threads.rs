//! What the log's two threads share its state by. `tests/models.rs` builds the modules that use this
//! with primitives that try every order of events instead.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
pub(super) use std::sync::mpsc::{Receiver, Sender};
pub(super) use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The checker's `Arc` has no function of this name.
pub(super) fn downgrade<T>(of: &Arc<T>) -> Weak<T> {
    Arc::downgrade(of)
}
