//! Time that never runs backwards, made of the host's clock, which may be set.

use std::time::Duration;

use vere_units::Timestamp;

/// The longest step that a single reading of the host's clock adds. Deadlines and rates are shorter, and sums of such
/// steps never reach the end of the range.
const STEP_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Milliseconds that have passed since the engine's first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    /// A moment that never comes.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// Makes the moment `millis` milliseconds after the first event.
    #[cfg(test)]
    pub(crate) const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Microseconds since the first event, for rates.
    pub(crate) const fn as_micros(self) -> u64 {
        self.0.saturating_mul(1_000)
    }

    /// The moment `span` later.
    pub(crate) fn after(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        )
    }

    /// The time since `earlier`, zero if `earlier` is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Full seconds that have passed.
    pub(crate) const fn second(self) -> u64 {
        self.0 / 1_000
    }

    /// The first full second that is not before this moment.
    pub(crate) const fn second_after(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// The moment at which a second begins.
    pub(crate) const fn of_second(second: u64) -> Self {
        Self(second.saturating_mul(1_000))
    }
}

/// The engine's clock. A clock of the host that is set back stands still here once and then goes on; a jump ahead
/// counts as time, up to [`STEP_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Clock {
    seen: Option<Timestamp>,
    passed: Moment,
}

impl Clock {
    /// Reads the host's clock.
    pub(crate) fn at(&mut self, now: Timestamp) -> Moment {
        let step = self
            .seen
            .map_or(Duration::ZERO, |seen| now.saturating_since(seen));
        self.seen = Some(now);
        self.passed = self.passed.after(step.min(STEP_MAX));
        self.passed
    }

    /// The time of the host's clock at which `moment` comes, unless that clock is set.
    pub(crate) fn date(&self, moment: Moment) -> Timestamp {
        self.seen.unwrap_or(Timestamp::ZERO) + moment.since(self.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stands_still_once() {
        let mut clock = Clock::default();
        let at = |clock: &mut Clock, millis| clock.at(Timestamp::from_millis(millis)).0;
        assert_eq!(at(&mut clock, 1_000_000), 0);
        assert_eq!(at(&mut clock, 1_000_250), 250);
        assert_eq!(at(&mut clock, 5), 250);
        assert_eq!(at(&mut clock, 15), 260);
        assert_eq!(
            clock.date(Moment(300)),
            Timestamp::from_millis(55),
            "40 ms are left"
        );
        assert_eq!(clock.date(Moment(1)), Timestamp::from_millis(15));
    }

    #[test]
    fn a_jump_ahead_counts_one_day() {
        let mut clock = Clock::default();
        let start = clock.at(Timestamp::ZERO);
        assert_eq!(clock.at(Timestamp::MAX).since(start), STEP_MAX);
        assert_eq!(STEP_MAX.as_secs(), 86_400);
        assert_eq!(clock.at(Timestamp::ZERO).since(start), STEP_MAX);
        assert_eq!(clock.at(Timestamp::MAX).since(start), 2 * STEP_MAX);
    }

    #[test]
    fn seconds_are_rounded_to_the_wanted_side() {
        let moment = Moment(2_001);
        assert_eq!((moment.second(), moment.second_after()), (2, 3));
        assert_eq!(Moment(2_000).second_after(), 2);
        assert_eq!(Moment::of_second(3), Moment(3_000));
        assert_eq!(moment.as_micros(), 2_001_000);
        assert_eq!(moment.after(Duration::MAX), Moment(u64::MAX));
    }
}
