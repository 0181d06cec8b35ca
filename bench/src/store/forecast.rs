//! The remaining time of a run, estimated from the run so far.

use std::time::{Duration, Instant};

use super::plan::{Part, Share};

/// Bounds of the speed of a machine, compared with the machine of the usual times.
const PACE: std::ops::RangeInclusive<f64> = 0.2..=5.0;

/// The parts of a run, and the beginning of the present part.
#[derive(Debug)]
pub(super) struct Forecast {
    /// Parts to come, the present part first, with their usual times.
    coming: Vec<(Part, Duration)>,
    began: Instant,
    /// Time of the finished parts, usually and here.
    usual: Duration,
    took: Duration,
}

impl Forecast {
    /// The forecast of the planned parts, each with a share of its usual time.
    pub(super) fn of(parts: &[Share], scale: f64, will_be: impl Fn(Part) -> bool) -> Self {
        let parts = parts.iter().filter(|share| will_be(share.part));
        Self {
            coming: parts
                .map(|one| (one.part, one.usual.mul_f64(scale)))
                .collect(),
            began: Instant::now(),
            usual: Duration::ZERO,
            took: Duration::ZERO,
        }
    }

    /// A part begins; earlier parts are over.
    pub(super) fn enter(&mut self, part: Part) {
        let now = Instant::now();
        self.enter_at(part, now);
    }

    fn enter_at(&mut self, part: Part, now: Instant) {
        let before = self.coming.iter().position(|(one, _)| *one == part);
        let over = self.coming.drain(..before.unwrap_or(0));
        let usual: Duration = over.map(|(_, usual)| usual).sum();
        if !usual.is_zero() {
            self.usual += usual;
            self.took += now.saturating_duration_since(self.began);
        }
        if before != Some(0) {
            self.began = now;
        }
    }

    /// The remaining time, if nothing else changes.
    pub(super) fn left(&self) -> Duration {
        self.left_at(Instant::now())
    }

    fn left_at(&self, now: Instant) -> Duration {
        let pace = match self.usual.as_secs_f64() {
            0.0 => 1.0,
            usual => self.took.as_secs_f64() / usual,
        };
        let pace = pace.clamp(*PACE.start(), *PACE.end());
        let spent = now.saturating_duration_since(self.began);
        let mut coming = self.coming.iter().map(|(_, usual)| usual.mul_f64(pace));
        let present = coming.next().unwrap_or_default().saturating_sub(spent);
        present + coming.sum::<Duration>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_the_pace_of_what_was() {
        let seconds = Duration::from_secs;
        let share = |part, usual| Share {
            part,
            rounds: 1,
            budget: Duration::ZERO,
            usual: seconds(usual),
        };
        let parts = [
            share(Part::Fill, 10),
            share(Part::Cold, 500),
            share(Part::Read, 40),
            share(Part::Memory, 20),
        ];
        let mut forecast = Forecast::of(&parts, 0.5, |part| part != Part::Cold);
        let began = forecast.began;
        assert_eq!(forecast.left_at(began), seconds(35));
        assert_eq!(forecast.left_at(began + seconds(3)), seconds(32));
        // The part took twice its usual time, and later parts will do so too.
        forecast.enter_at(Part::Read, began + seconds(10));
        assert_eq!(forecast.left_at(began + seconds(10)), seconds(60));
        forecast.enter_at(Part::Read, began + seconds(11));
        assert_eq!(forecast.left_at(began + seconds(30)), seconds(40));
        assert_eq!(forecast.left_at(began + seconds(999)), seconds(20));
        forecast.enter_at(Part::Memory, began + seconds(50));
        assert_eq!(forecast.left_at(began + seconds(999)), Duration::ZERO);
    }
}
