//! Orders from the thread of signals to the loop.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use vere_settings::Settings;

/// Orders from the thread of signals.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The front has to end.
    pub(crate) stop: AtomicBool,
    /// Other settings are in force.
    pub(crate) settings: Mutex<Option<Arc<Settings>>>,
}
