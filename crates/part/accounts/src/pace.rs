//! When an account may be tried again, and by how many connections.

use std::time::Duration;

use tokio::time::Instant;

/// Wait after the first failure; each further failure doubles the wait.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The longest wait that an account may ask for.
const TOLD_LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// Quiet time before a further connection is allowed.
const QUIET: Duration = Duration::from_secs(10 * 60);

/// The pace of an account.
#[derive(Debug)]
pub(crate) struct Pace {
    failures: u32,
    /// The earliest time of the next connection.
    pub(crate) dial_from: Instant,
    /// The earliest time of the next request.
    pub(crate) ask_from: Instant,
    /// Connections allowed now, and by the settings.
    connections: usize,
    connections_max: usize,
    raised: Instant,
}

impl Pace {
    pub(crate) fn new(connections_max: usize, now: Instant) -> Self {
        let connections = connections_max.max(1);
        Self {
            failures: 0,
            dial_from: now,
            ask_from: now,
            connections,
            connections_max: connections,
            raised: now,
        }
    }

    /// Notes a failure, and returns the wait before the next attempt.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        let wait = FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        let wait = wait.min(LONGEST);
        self.failures = self.failures.saturating_add(1).min(16);
        self.dial_from = now + wait;
        wait
    }

    /// Whether the account has failed since its last answer.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Notes an answer: the account works.
    pub(crate) const fn works(&mut self) {
        self.failures = 0;
    }

    /// Notes a wish for fewer connections, and returns the wait.
    pub(crate) fn crowded(&mut self, told: Duration, now: Instant) -> Duration {
        let own = self.failed(now);
        let wait = if told.is_zero() {
            own
        } else {
            told.min(TOLD_LONGEST)
        };
        self.dial_from = now + wait;
        self.connections = (self.connections / 2).max(1);
        self.raised = now;
        wait
    }

    /// Notes the same wish from a connection that was tried together with another one, and returns the wait: the longer one.
    pub(crate) fn crowded_again(&mut self, told: Duration, now: Instant) -> Duration {
        self.dial_from = self.dial_from.max(now + told.min(TOLD_LONGEST));
        self.dial_from.saturating_duration_since(now)
    }

    /// Notes a wish for fewer requests and connections, and returns the wait.
    pub(crate) fn throttled(&mut self, told: Duration, now: Instant) -> Duration {
        let wait = self.crowded(told, now);
        self.ask_from = now + wait;
        wait
    }

    /// The connections allowed now.
    pub(crate) fn connections(&mut self, now: Instant) -> usize {
        while self.connections < self.connections_max && now >= self.raised + QUIET {
            self.connections = self.connections.saturating_add(1);
            self.raised += QUIET;
        }
        self.connections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_for_fewer_connections_counts_once() {
        let begin = Instant::now();
        let mut pace = Pace::new(8, begin);
        assert_eq!(pace.crowded(Duration::ZERO, begin), FIRST);
        assert_eq!(pace.crowded_again(Duration::ZERO, begin), FIRST);
        assert_eq!(pace.crowded_again(FIRST * 5, begin), FIRST * 5);
        assert_eq!(pace.crowded_again(FIRST * 3, begin), FIRST * 5);
        assert_eq!(pace.connections(begin), 4);
        assert_eq!(pace.failed(begin), FIRST * 2);
    }

    #[test]
    fn waits_double_and_connections_come_back() {
        let begin = Instant::now();
        let mut pace = Pace::new(8, begin);
        let waits: Vec<u64> = (0..12).map(|_| pace.failed(begin).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        pace.works();
        assert_eq!(pace.throttled(Duration::ZERO, begin), FIRST);
        let told = Duration::from_millis(2_500);
        assert_eq!(pace.throttled(told, begin).as_millis(), 2_500);
        assert_eq!(pace.connections(begin), 2);
        let long = Duration::from_secs(3_600);
        assert_eq!(Pace::new(8, begin).throttled(long, begin), long);
        assert_eq!(
            Pace::new(8, begin).throttled(long * 1_000, begin),
            TOLD_LONGEST
        );
        assert_eq!(pace.connections(begin + QUIET * 3), 5);
        assert_eq!(pace.connections(begin + QUIET * 30), 8);
    }
}
