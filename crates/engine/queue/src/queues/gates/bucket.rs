//! A token bucket that stores a single time: the generic cell rate algorithm (ITU-T I.371).

use vere_units::Timestamp;

use super::super::step::Step;
use crate::limits::Rate;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The times at which messages may leave. Times are in nanoseconds, so that rates far above one
/// message a millisecond are exact too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    rate: Rate,
    /// Time from which the bucket is full again.
    full_at: u64,
}

impl Bucket {
    pub(super) const fn new(rate: Rate) -> Self {
        Self { rate, full_at: 0 }
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// The time that one message uses up, rounded up so that the rate is never exceeded.
    fn interval(&self) -> u64 {
        let nanos = u64::try_from(self.rate.per.as_nanos()).unwrap_or(u64::MAX);
        nanos.div_ceil(u64::from(self.rate.messages.max(1)))
    }

    fn tolerance(&self) -> u64 {
        let more = u64::from(self.rate.burst.max(1) - 1);
        self.interval().saturating_mul(more)
    }

    /// The time from which a message may leave.
    pub(super) fn next_at(&self) -> Timestamp {
        let nanos = self.full_at.saturating_sub(self.tolerance());
        Timestamp::from_millis(nanos.div_ceil(NANOS_PER_MILLI))
    }

    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.next_at() <= now
    }

    /// Follows a step of the wall clock.
    pub(super) fn step(&mut self, step: Step) {
        let mut full_at = Timestamp::from_millis(self.full_at / NANOS_PER_MILLI);
        step.apply(&mut full_at);
        self.full_at = full_at.as_millis().saturating_mul(NANOS_PER_MILLI);
    }

    /// Whether all taken tokens have been refilled.
    pub(super) const fn is_full(&self, now: Timestamp) -> bool {
        self.full_at <= now.as_millis().saturating_mul(NANOS_PER_MILLI)
    }

    /// Takes a token. The caller checks [`is_ready`](Self::is_ready) before.
    pub(super) fn take(&mut self, now: Timestamp) {
        let now = now.as_millis().saturating_mul(NANOS_PER_MILLI);
        self.full_at = self.full_at.max(now).saturating_add(self.interval());
    }

    /// Returns an unused token.
    pub(super) fn give_back(&mut self) {
        self.full_at = self.full_at.saturating_sub(self.interval());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// In every span of time at most the burst and what the rate gives leave, and no token is lost.
        #[test]
        fn the_rate_is_kept_and_used_up(
            messages in 1_u32..5_000,
            per in 1_u64..100_000,
            burst in 1_u32..50,
            waits in proptest::collection::vec(0_u64..2_000, 1..200),
        ) {
            let rate = Rate { messages, per: Duration::from_millis(per), burst };
            let mut bucket = Bucket::new(rate);
            let begin = 1_700_000_000_000;
            let mut now = begin;
            let mut sent = 0_u64;
            for wait in waits {
                now += wait;
                // As many as it gives, bounded for the test.
                for _ in 0..200 {
                    if !bucket.is_ready(Timestamp::from_millis(now)) {
                        break;
                    }
                    bucket.take(Timestamp::from_millis(now));
                    sent += 1;
                }
                let allowed = u64::from(burst) + u64::from(messages) * (now - begin) / per;
                prop_assert!(sent <= allowed, "{sent} of {allowed}");
            }
            let next = bucket.next_at().as_millis().max(now);
            prop_assert!(bucket.is_ready(Timestamp::from_millis(next)));
            let longest = (per / u64::from(messages) + 1) * u64::from(burst);
            prop_assert!(next <= now + longest, "a token comes");
        }
    }

    #[test]
    fn a_token_that_comes_back_is_used_again() {
        let rate = Rate {
            messages: 1,
            per: Duration::from_secs(10),
            burst: 1,
        };
        let mut bucket = Bucket::new(rate);
        let now = Timestamp::from_millis(50_000);
        bucket.take(now);
        assert!(!bucket.is_ready(now));
        assert_eq!(bucket.next_at(), Timestamp::from_millis(60_000));
        bucket.give_back();
        assert!(bucket.is_ready(now));
        bucket.take(now);
        assert_eq!(bucket.next_at(), Timestamp::from_millis(60_000));
    }
}
