//! Steady time, which counts through sleep of the machine, and the name of the boot.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// Steady time begins here, so that times before the boot have a number.
const BEFORE_BOOT: Duration = Duration::from_secs(30 * 24 * 3_600);

/// The name of the boot.
const BOOT_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The clocks of a process.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    boot: String,
    /// Steady time and the time of the wall, in tests.
    #[cfg(test)]
    fixed: Option<(Duration, Duration)>,
}

impl Clock {
    pub(crate) fn of_system() -> Self {
        // Without a name every boot is another one, and the wall clock counts.
        let boot = fs::read_to_string(BOOT_FILE).unwrap_or_default();
        let boot: String = boot.split_whitespace().collect();
        Self {
            boot: match boot.is_empty() {
                true => "unknown".to_owned(),
                false => boot,
            },
            #[cfg(test)]
            fixed: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn fixed(boot: &str, steady: Duration, wall: Duration) -> Self {
        Self {
            boot: boot.to_owned(),
            fixed: Some((steady, wall)),
        }
    }

    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    /// The steady time.
    pub(crate) fn steady(&self) -> Duration {
        #[cfg(test)]
        if let Some((steady, _)) = self.fixed {
            return steady;
        }
        let time = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
        time.unwrap_or_default().saturating_add(BEFORE_BOOT)
    }

    /// The time since 1970; zero for an earlier time.
    pub(crate) fn wall(&self) -> Duration {
        #[cfg(test)]
        if let Some((_, wall)) = self.fixed {
            return wall;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default()
    }
}
