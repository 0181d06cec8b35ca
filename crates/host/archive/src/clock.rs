//! The clock of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

use vere_units::Timestamp;

/// The clock of this machine.
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
