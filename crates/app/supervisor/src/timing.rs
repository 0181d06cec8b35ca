//! The times by which roles are judged.

use std::time::Duration;

/// The times by which roles are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// Longest silence of a starting role; recovery may take longer, if the role reports the delay meanwhile.
    pub(super) start_silence: Duration,
    /// Longest silence of a working role.
    pub(super) watchdog: Duration,
    /// Longest time a role may take to stop.
    pub(super) stop: Duration,
    /// Pause after the first crash.
    pub(super) restart_first: Duration,
    /// Longest pause after many.
    pub(super) restart_longest: Duration,
    /// After this time without a crash, a role starts with the first pause again.
    pub(super) stable_after: Duration,
}

impl Timing {
    /// The times of a running system.
    pub(super) const DEFAULT: Self = Self {
        start_silence: Duration::from_secs(120),
        watchdog: Duration::from_secs(30),
        stop: Duration::from_secs(30),
        restart_first: Duration::from_millis(50),
        restart_longest: Duration::from_secs(10),
        stable_after: Duration::from_secs(5),
    };
}
