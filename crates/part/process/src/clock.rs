//! The clocks, read here and passed into engines and machines: the wall clock, for what people and records are told,
//! and one that never steps, for deadlines.

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use vere_queue::Step;
use vere_units::Timestamp;

/// The wall clock when the process first asked, and what the clock since boot said then.
static BEGIN: LazyLock<(Timestamp, Duration)> = LazyLock::new(|| (now(), since_boot()));

/// The time now; a clock before 1970 counts as 1970.
pub fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The time now by a clock that began as the wall clock and is neither put ahead nor back: sessions live by it.
pub fn steady() -> Timestamp {
    let (begin, boot) = *BEGIN;
    begin + since_boot().saturating_sub(boot)
}

/// How long until [`steady`] is `then`; zero when it has passed.
pub fn until_steady(then: Timestamp) -> Duration {
    then.saturating_since(steady())
}

/// Time since the machine started, suspension included (clock_getres(2), `CLOCK_BOOTTIME`).
pub fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Notices when the wall clock steps.
#[derive(Debug)]
pub struct Watch(Cell<(Timestamp, Duration)>);

impl Default for Watch {
    fn default() -> Self {
        Self(Cell::new((now(), since_boot())))
    }
}

impl Watch {
    /// The time now, and the step of the clock since it was asked last.
    pub fn look(&self) -> (Timestamp, Option<Step>) {
        let (now, boot) = (now(), since_boot());
        let (before, boot_before) = self.0.replace((now, boot));
        (
            now,
            Step::between(before, now, boot.saturating_sub(boot_before)),
        )
    }
}

/// How long from `now` until `then`; zero when it has passed.
pub fn until(then: Timestamp) -> Duration {
    then.saturating_since(now())
}
