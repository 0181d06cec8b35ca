//! How often and how long delivery is tried.

use std::time::Duration;

use crate::limits::Rules;

/// How delivery is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Waiting times before the second, third, ... attempt; the last wait repeats. Not empty.
    pub retry: Vec<Duration>,
    /// The age at which a message expires.
    pub expire: Duration,
    /// The age at which the sender gets a delay notice; `None` for no notice.
    pub delay_notice: Option<Duration>,
    /// Concurrent connections to a destination.
    pub connections_per_destination_max: usize,
    /// Concurrent connections to a site, over all destinations.
    pub connections_per_site_max: usize,
    /// Connections to all destinations at once.
    pub connections_max: usize,
    /// Octets of envelopes and bodies kept in memory; further ones are read back from the spool.
    pub head_memory_max: usize,
    /// The rules for single destinations and sites.
    pub rules: Rules,
}

impl Default for Policy {
    fn default() -> Self {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        Self {
            retry: vec![
                minutes(1),
                minutes(5),
                minutes(15),
                minutes(60),
                minutes(240),
            ],
            expire: minutes(5 * 24 * 60),
            delay_notice: Some(minutes(240)),
            connections_per_destination_max: 20,
            connections_per_site_max: 100,
            connections_max: 2_000,
            head_memory_max: 256 << 20,
            rules: Rules::default(),
        }
    }
}

impl Policy {
    /// The index of the wait after this many failures; the last wait repeats after an attempt by
    /// hand.
    pub(crate) fn step(failures: u16, by_hand: bool) -> u16 {
        failures.saturating_sub(u16::from(by_hand))
    }

    /// The longest wait between two attempts.
    #[must_use]
    pub fn longest_retry(&self) -> Duration {
        self.retry.iter().copied().max().unwrap_or_default()
    }

    /// The wait after `attempts` earlier failures.
    #[must_use]
    pub fn retry_after(&self, attempts: u16) -> Duration {
        let index = usize::from(attempts).min(self.retry.len().saturating_sub(1));
        self.retry
            .get(index)
            .copied()
            .unwrap_or(Duration::from_secs(60))
    }
}
