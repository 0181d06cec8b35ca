//! The number of connections that a site can carry: increased by successes, decreased by busy signs
//! and growing latency (additive increase, multiplicative decrease, as in RFC 5681 for segments).
//!
//! The window starts small and doubles with every round of answers until the first sign of load.
//! From then on the window grows by one connection a round. At most once a round, a busy site
//! halves the window, and a slow site takes an eighth off. The window stays between 1 and the given
//! maximum.

use std::time::Duration;

use vere_units::Timestamp;

use super::super::step::Step;

use crate::settlement::{Attempt, Disposition, RecipientResult};

/// One connection.
const ONE: u64 = 1 << 20;
/// Connections to a site without history.
const START: u64 = 10;
/// Divisor of the moving average: a new latency replaces this part.
const SMOOTH: u64 = 8;
/// Divisor by which the least latency rises with every answer, so that old values fade.
const FORGET: u64 = 256;
/// A latency of this multiple of the least latency means that messages queue inside the site.
const SLOW_FACTOR: u64 = 4;
/// Latencies up to the least latency plus this are never slow: one second more is no sign of load.
const SLOW_SLACK_MICROS: u64 = 1_000_000;
/// Pause of growth after the site refused a connection while others worked.
const CAPPED_FOR: Duration = Duration::from_secs(60);

/// A sign of the site's load, from one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The site took a message.
    Taken,
    /// The site is busy: it deferred a whole message, or closed the connection.
    Busy,
    /// No sign: the site refused the message for good, or for one mailbox.
    Neither,
}

impl Sign {
    /// The sign of an attempt's results. A message deferred because of the recipient's mailbox or
    /// address (X.1 and X.2 of RFC 3463) is no sign.
    #[must_use]
    pub fn of(attempt: &Attempt) -> Self {
        let taken = |one: &RecipientResult| one.disposition == Disposition::Delivered;
        let put_off = |one: &RecipientResult| {
            let personal = one.status.starts_with("4.1.") || one.status.starts_with("4.2.");
            one.disposition == Disposition::Deferred && !personal
        };
        if attempt.results.iter().any(taken) {
            Self::Taken
        } else if !attempt.results.is_empty() && attempt.results.iter().all(put_off) {
            Self::Busy
        } else {
            Self::Neither
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Connections, in parts of [`ONE`].
    size: u64,
    /// Whether the site has shown no load yet.
    doubling: bool,
    /// Attempts that began before this time were under way when the window shrank, so their signs
    /// are ignored.
    shrunk_at: Timestamp,
    /// Time before which the window does not grow.
    capped_until: Timestamp,
    /// The average latency in microseconds; 0 if unknown.
    latency: u64,
    /// The least recent latency.
    least: u64,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self {
            size: START * ONE,
            doubling: true,
            shrunk_at: Timestamp::from_millis(0),
            capped_until: Timestamp::from_millis(0),
            latency: 0,
            least: 0,
        }
    }

    /// Follows a step of the wall clock.
    pub(super) fn step(&mut self, step: Step) {
        step.apply(&mut self.shrunk_at);
        step.apply(&mut self.capped_until);
    }

    /// Connections allowed now.
    pub(super) fn limit(&self, max: usize) -> usize {
        let size = usize::try_from(self.size / ONE).unwrap_or(usize::MAX);
        size.min(max).max(1)
    }

    /// The average latency.
    pub(super) const fn latency(&self) -> Duration {
        Duration::from_micros(self.latency)
    }

    /// Restarts with one connection, because the site answers again.
    pub(super) const fn restart(&mut self) {
        self.size = ONE;
        self.doubling = true;
    }

    /// Limits the window to `connections`: the site refused more.
    pub(super) fn cap(&mut self, connections: usize, now: Timestamp) {
        let size = u64::try_from(connections).unwrap_or(u64::MAX).max(1);
        self.size = self.size.min(size.saturating_mul(ONE));
        self.doubling = false;
        self.shrunk_at = now;
        self.capped_until = now + CAPPED_FOR;
    }

    /// Applies the sign of an attempt that began at `began`. `full`: all connections of the window
    /// were in use.
    pub(super) fn saw(
        &mut self,
        sign: Sign,
        began: Timestamp,
        latency: Duration,
        full: bool,
        max: usize,
        now: Timestamp,
    ) {
        match sign {
            Sign::Neither => {}
            Sign::Busy => self.shrink(began, now, 2),
            Sign::Taken => {
                self.measure(latency);
                if self.is_slow() {
                    self.shrink(began, now, 8);
                } else if full && now >= self.capped_until {
                    self.grow(max);
                }
            }
        }
    }

    /// Shrinks the window by one `parts`-th, at most once a round.
    fn shrink(&mut self, began: Timestamp, now: Timestamp, parts: u64) {
        self.doubling = false;
        if began > self.shrunk_at {
            self.size = (self.size - self.size / parts).max(ONE);
            self.shrunk_at = now;
        }
    }

    fn grow(&mut self, max: usize) {
        let more = if self.doubling {
            ONE
        } else {
            ONE * ONE / self.size
        };
        let max = u64::try_from(max).unwrap_or(u64::MAX).saturating_mul(ONE);
        self.size = self.size.saturating_add(more).min(max.max(ONE));
    }

    fn measure(&mut self, latency: Duration) {
        let sample = u64::try_from(latency.as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        if self.latency == 0 {
            self.latency = sample;
            self.least = sample;
            return;
        }
        self.latency = self.latency - self.latency / SMOOTH + sample / SMOOTH;
        self.least = self
            .least
            .saturating_add(self.least / FORGET + 1)
            .min(sample);
    }

    const fn is_slow(&self) -> bool {
        self.latency > self.least.saturating_mul(SLOW_FACTOR)
            && self.latency > self.least.saturating_add(SLOW_SLACK_MICROS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FAST: Duration = Duration::from_millis(20);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(1_000_000 + millis)
    }

    /// Rounds of answers, as many as connections, each a second after the one before.
    fn rounds(window: &mut Window, sign: Sign, latency: Duration, count: u64, max: usize) {
        let begin = window.shrunk_at.as_millis().max(1_000_000);
        for round in 1..=count {
            let now = Timestamp::from_millis(begin + round * 1_000);
            for _ in 0..window.limit(max) {
                window.saw(sign, now, latency, true, max, now);
            }
        }
    }

    #[test]
    fn it_doubles_at_first_and_then_grows_by_one_a_round() {
        let mut window = Window::new();
        rounds(&mut window, Sign::Taken, FAST, 1, 1_000);
        assert_eq!(window.limit(1_000), 20);
        rounds(&mut window, Sign::Taken, FAST, 2, 1_000);
        assert_eq!(window.limit(1_000), 80);
        rounds(&mut window, Sign::Busy, FAST, 1, 1_000);
        assert_eq!(window.limit(1_000), 40, "once a round");
        rounds(&mut window, Sign::Taken, FAST, 3, 1_000);
        assert!((42..=44).contains(&window.limit(1_000)), "{window:?}");
    }

    #[test]
    fn it_does_not_grow_beyond_what_is_used() {
        let mut window = Window::new();
        for _ in 0..1_000 {
            window.saw(Sign::Taken, at(0), FAST, false, 1_000, at(1));
        }
        assert_eq!(window.limit(1_000), 10);
    }

    #[test]
    fn a_site_that_slows_down_gets_fewer_connections_until_it_is_fast_again() {
        let mut window = Window::new();
        rounds(&mut window, Sign::Taken, FAST, 5, 100);
        assert_eq!(window.limit(100), 100);
        rounds(&mut window, Sign::Taken, Duration::from_secs(8), 6, 100);
        let slow = window.limit(100);
        assert!(slow < 60, "{slow}");
        rounds(&mut window, Sign::Taken, FAST, 70, 100);
        assert_eq!(window.limit(100), 100);
    }

    #[test]
    fn a_refused_connection_says_how_many_there_may_be() {
        let mut window = Window::new();
        rounds(&mut window, Sign::Taken, FAST, 3, 100);
        window.cap(7, at(10_000));
        window.saw(Sign::Taken, at(20_000), FAST, true, 100, at(20_000));
        assert_eq!(window.limit(100), 7);
        for _ in 0..8 {
            window.saw(Sign::Taken, at(80_000), FAST, true, 100, at(80_000));
        }
        assert_eq!(window.limit(100), 8, "it is tried again after a while");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_keeps_its_bounds_and_recovers(
            max in 1_usize..200,
            steps in proptest::collection::vec((0_u8..5, 0_u64..20_000, 0_u64..10_000), 1..300),
        ) {
            let mut window = Window::new();
            let mut now = 0;
            for (what, latency, wait) in steps {
                now += wait;
                let sign = [Sign::Taken, Sign::Busy, Sign::Neither][usize::from(what % 3)];
                let latency = Duration::from_millis(latency);
                match what {
                    3 => window.cap(usize::try_from(wait % 50).unwrap(), at(now)),
                    4 => window.restart(),
                    _ => window.saw(sign, at(now), latency, true, max, at(now)),
                }
                prop_assert!((1..=max).contains(&window.limit(max)));
            }
            window.shrunk_at = window.shrunk_at.max(at(now + 60_000));
            rounds(&mut window, Sign::Taken, FAST, 900, max);
            prop_assert_eq!(window.limit(max), max);
        }
    }
}
