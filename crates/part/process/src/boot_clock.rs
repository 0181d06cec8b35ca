//! A clock that is not set: the time at its start, and what has passed since.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use vere_units::Timestamp;

/// Time for timeouts and leases. Setting the system's clock does not move it; the time in which the
/// machine is suspended counts, for others have gone on meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    begun: Duration,
    then: Timestamp,
}

impl Clock {
    /// Starts with the time of the system's clock.
    pub fn start() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            begun: since_boot(),
            then: Timestamp::ZERO + since,
        }
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.then + since_boot().saturating_sub(self.begun)
    }
}

/// `CLOCK_BOOTTIME` (`clock_gettime(2)`), which every kernel that this program runs on has.
#[allow(
    clippy::expect_used,
    reason = "without a clock no lease and no timeout can be kept"
)]
fn since_boot() -> Duration {
    let time =
        clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the kernel tells the time since boot");
    Duration::from(time)
}
