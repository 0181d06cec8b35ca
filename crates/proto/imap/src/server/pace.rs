//! How fast a literal comes.

use std::time::Duration;

use vere_units::Timestamp;

use crate::limits::Limits;

/// The time allowed for a command with a literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    began: Timestamp,
    /// The time until which the octets received suffice.
    paid_until: Timestamp,
}

impl Pace {
    pub(super) fn new(limits: &Limits, now: Timestamp) -> Self {
        Self {
            began: now,
            paid_until: now + limits.literal_window,
        }
    }

    /// Records received octets: each octet buys time, at most one window from now.
    pub(super) fn take(&mut self, octets: usize, limits: &Limits, now: Timestamp) {
        let millis = u64::try_from(octets)
            .unwrap_or(u64::MAX)
            .saturating_mul(1000);
        let Some(millis) = millis.checked_div(limits.literal_octets_per_second_min) else {
            return;
        };
        let window_end = now + limits.literal_window;
        self.paid_until = window_end.min(self.paid_until + Duration::from_millis(millis));
    }

    /// When the command is too late, unless more of it comes.
    pub(super) fn due(&self, limits: &Limits) -> Timestamp {
        match limits.literal_octets_per_second_min {
            0 => Timestamp::MAX,
            _ => self.paid_until.min(self.began + limits.literal_time_max),
        }
    }
}
