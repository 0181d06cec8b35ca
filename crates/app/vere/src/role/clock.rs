//! The wall clock, read here and passed into engines and machines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vere_units::Timestamp;

/// The time now; a clock before 1970 counts as 1970.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long from `now` until `then`; zero when it has passed.
pub(crate) fn until(then: Timestamp) -> Duration {
    then.saturating_since(now())
}
