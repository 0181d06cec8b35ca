//! Rates: so many events in a period, by the generic cell rate algorithm.

use std::time::Duration;

use crate::clock::Moment;

/// Events allowed in a period.
///
/// The whole count may come in one burst; then another event is allowed every `period / count`. A count of 0 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Number of events.
    pub count: u32,
    /// Length of the period, up to a day.
    pub period: Duration,
}

impl Rate {
    /// `count` events a minute.
    #[must_use]
    pub const fn per_minute(count: u32) -> Self {
        Self {
            count,
            period: Duration::from_secs(60),
        }
    }

    /// `count` events an hour.
    #[must_use]
    pub const fn per_hour(count: u32) -> Self {
        Self {
            count,
            period: Duration::from_secs(3_600),
        }
    }

    fn period_micros(self) -> u64 {
        u64::try_from(self.period.as_micros()).unwrap_or(u64::MAX)
    }

    fn interval_micros(self) -> u64 {
        self.period_micros() / u64::from(self.count.max(1))
    }
}

/// The use of a rate by one address or network: the moment at which all of the rate is free again, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Meter(u64);

impl Meter {
    /// No use.
    pub(crate) const NONE: Self = Self(0);

    /// Whether no further event is allowed now.
    pub(crate) fn is_spent(self, now: Moment, rate: Rate) -> bool {
        let end = now.as_micros().saturating_add(rate.period_micros());
        self.with(now, rate) > end
    }

    /// Counts an event. Use beyond the rate is not remembered, so that a client waits `period / count` at most.
    pub(crate) fn count(&mut self, now: Moment, rate: Rate) {
        let end = now.as_micros().saturating_add(rate.period_micros());
        self.0 = self.with(now, rate).min(end);
    }

    /// The use after one more event. The previous use is bounded by the period, as a reload may shorten the period.
    fn with(self, now: Moment, rate: Rate) -> u64 {
        let now = now.as_micros();
        let end = now.saturating_add(rate.period_micros());
        self.0
            .clamp(now, end)
            .saturating_add(rate.interval_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::per_minute(3);

    fn at(seconds: u64) -> Moment {
        Moment::of_second(seconds)
    }

    #[test]
    fn a_burst_is_allowed_and_then_one_event_an_interval() {
        let mut meter = Meter::default();
        for _ in 0..3 {
            assert!(!meter.is_spent(at(100), RATE));
            meter.count(at(100), RATE);
        }
        assert!(meter.is_spent(at(100), RATE));
        assert!(meter.is_spent(at(119), RATE));
        assert!(!meter.is_spent(at(120), RATE));
        meter.count(at(120), RATE);
        assert!(meter.is_spent(at(139), RATE));
        assert!(!meter.is_spent(at(140), RATE));
        for _ in 0..3 {
            assert!(!meter.is_spent(at(180), RATE));
            meter.count(at(180), RATE);
        }
        assert!(meter.is_spent(at(180), RATE));
    }

    #[test]
    fn use_beyond_the_rate_is_forgotten() {
        let mut meter = Meter::default();
        for _ in 0..1_000 {
            meter.count(at(0), RATE);
        }
        assert!(meter.is_spent(at(19), RATE));
        assert!(!meter.is_spent(at(20), RATE));
    }

    #[test]
    fn a_shorter_period_frees_the_client_earlier() {
        let mut meter = Meter::default();
        let hour = Rate::per_hour(1);
        meter.count(at(0), hour);
        assert!(meter.is_spent(at(3_599), hour));
        assert!(meter.is_spent(at(1), RATE));
        meter.count(at(1), RATE);
        assert!(!meter.is_spent(at(21), RATE));
    }

    #[test]
    fn extreme_rates_neither_divide_by_zero_nor_overflow() {
        let endless = Rate {
            count: 0,
            period: Duration::MAX,
        };
        let mut meter = Meter::default();
        meter.count(Moment::from_millis(u64::MAX), endless);
        assert!(!meter.is_spent(Moment::from_millis(u64::MAX), endless));
        let none = Rate {
            count: 5,
            period: Duration::ZERO,
        };
        assert!(!meter.is_spent(Moment::from_millis(1), none));
    }
}
