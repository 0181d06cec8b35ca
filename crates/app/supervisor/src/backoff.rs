//! How long a crashed role waits before it is started again.

use std::time::Duration;

/// Doubling pauses between restarts, starting fast.
///
/// A single crash must hardly be felt (clients queue on the listening socket meanwhile), and a
/// broken role must not eat the machine.
#[derive(Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(super) const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            failures: 0,
        }
    }

    /// Counts one more failure and returns the pause before the next start.
    pub(super) fn failed(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        self.first.saturating_mul(factor).min(self.longest)
    }

    /// Forgets earlier failures: the role has lived long enough.
    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_again_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10));
        let pauses: Vec<u128> = (0..10).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(
            pauses,
            [50, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
        backoff.succeeded();
        assert_eq!(backoff.failed().as_millis(), 50);
    }

    #[test]
    fn endless_failures_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10));
        for _ in 0..200 {
            backoff.failed();
        }
        assert_eq!(backoff.failed(), Duration::from_secs(10));
    }
}
