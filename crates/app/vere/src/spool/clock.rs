//! A clock that is not set: the time at its start, and what has passed since.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use vere_units::Timestamp;

/// Time for timeouts; setting the system's clock does not move it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    begun: Instant,
    then: Timestamp,
}

impl Clock {
    pub(super) fn start() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let then = Timestamp::ZERO + since;
        Self {
            begun: Instant::now(),
            then,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.then + self.begun.elapsed()
    }
}
