//! How fast a peer goes on, over the last minute.

use std::time::Duration;

use tokio::time::Instant;

/// Octets a second of a peer that is not too slow.
pub const RATE_MIN: u64 = 1024;
/// Period over which the rate of a peer is measured.
const WINDOW: Duration = Duration::from_secs(60);

/// The window moves on in steps.
const STEP: Duration = Duration::from_secs(10);
/// Number of complete steps in the window, plus the current step.
const STEPS: usize = 7;

/// Octets over the last minute.
#[derive(Debug, Clone)]
pub struct Pace {
    began: Instant,
    /// The step that is under way, counted from the beginning, and the octets of it and of those before it.
    step: u64,
    octets: [u64; STEPS],
}

impl Pace {
    /// Begins to measure now.
    pub fn begin(now: Instant) -> Self {
        Self {
            began: now,
            step: 0,
            octets: [0; STEPS],
        }
    }

    /// Takes note of octets.
    pub fn add(&mut self, now: Instant, octets: usize) {
        self.go_on(now);
        self.octets[self.step as usize % STEPS] += octets as u64;
    }

    /// Whether fewer octets went by in the last minute than should.
    pub fn is_slow(&mut self, now: Instant) -> bool {
        self.go_on(now);
        let sum: u64 = self.octets.iter().sum();
        now.duration_since(self.began) > WINDOW && sum < RATE_MIN * WINDOW.as_secs()
    }

    fn go_on(&mut self, now: Instant) {
        let step = now.duration_since(self.began).as_secs() / STEP.as_secs();
        let passed = (step - self.step).min(STEPS as u64);
        for ahead in 1..=passed {
            self.octets[(self.step + ahead) as usize % STEPS] = 0;
        }
        if passed == STEPS as u64 {
            self.octets = [0; STEPS];
        }
        self.step = step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_enough_octets_is_slow() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let mut pace = Pace::begin(began);
        assert!(!pace.is_slow(at(60)));
        assert!(pace.is_slow(at(61)));
        // What was long ago buys no time.
        let mut pace = Pace::begin(began);
        pace.add(at(1), 40_000_000);
        assert!(!pace.is_slow(at(61)));
        assert!(pace.is_slow(at(75)));
        assert!(pace.is_slow(at(10_000)));
        // Little but often is enough, whatever the pieces.
        for every in [1, 7, 30, 55] {
            let mut pace = Pace::begin(began);
            for second in 0..10_000 {
                if second % every == 0 {
                    pace.add(at(second), 1_150 * every as usize);
                }
                assert!(!pace.is_slow(at(second)), "{second} of every {every}");
            }
        }
        let mut pace = Pace::begin(began);
        let slow = (0..1_000).find(|second| {
            pace.add(at(*second), 500);
            pace.is_slow(at(*second))
        });
        assert_eq!(slow, Some(61));
    }
}
