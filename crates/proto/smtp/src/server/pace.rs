//! How fast a message comes.

use std::time::Duration;

use vere_units::Timestamp;

use crate::limits::Limits;

/// The time allowed for a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    began: Timestamp,
    received: u64,
    /// The time until which the received octets suffice, once they exceed the octets due in a
    /// window.
    paid_until: Timestamp,
}

impl Pace {
    pub(super) const fn new(began: Timestamp) -> Self {
        Self {
            began,
            received: 0,
            paid_until: began,
        }
    }

    /// Records received octets.
    pub(super) fn take(&mut self, octets: usize, limits: &Limits, now: Timestamp) {
        let octets = u64::try_from(octets).unwrap_or(u64::MAX);
        let was_short = self.is_short(limits);
        self.received = self.received.saturating_add(octets);
        let window_end = now + limits.data_window;
        let millis = octets.saturating_mul(1000);
        let Some(millis) = millis.checked_div(limits.data_octets_per_second_min) else {
            return;
        };
        // Rounded up: an octet alone takes less than what time is counted in.
        let earned = Duration::from_millis(millis.saturating_add(1));
        self.paid_until = match was_short {
            true => window_end,
            false => window_end.min(self.paid_until + earned),
        };
    }

    /// When the message is too late, unless more of it comes.
    pub(super) fn due(&self, limits: &Limits) -> Timestamp {
        let Some(earned) = self.received.checked_div(limits.data_octets_per_second_min) else {
            return Timestamp::MAX;
        };
        let slow = match self.is_short(limits) {
            true => self.began + limits.data_timeout + Duration::from_secs(earned),
            false => self.paid_until,
        };
        slow.min(self.began + limits.data_time_max)
    }

    fn is_short(&self, limits: &Limits) -> bool {
        let in_window = limits
            .data_octets_per_second_min
            .saturating_mul(limits.data_window.as_secs());
        self.received <= in_window
    }
}
