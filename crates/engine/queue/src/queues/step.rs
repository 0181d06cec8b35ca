//! Steps of the wall clock. The queues keep wall clock times, so that operators and records can
//! have them. When the clock steps, these times move along, and every wait keeps its length.

use std::time::Duration;

use vere_units::Timestamp;

use super::entries::Standing;
use super::wheel::Wheel;
use super::{Queues, Timer};
use crate::order::FOREVER;

/// A step of the clock in milliseconds; positive when the clock was put ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step(i64);

impl Step {
    /// Least difference that counts as a step. Slewing (adjtime(3)) moves a clock by less between
    /// two readings.
    const LEAST: Duration = Duration::from_secs(30);

    /// The step between two readings of the wall clock, if there was one. `passed` is the true time
    /// between the readings, by the monotonic clock.
    #[must_use]
    pub fn between(before: Timestamp, after: Timestamp, passed: Duration) -> Option<Self> {
        let expected = before + passed;
        let ahead = after.saturating_since(expected);
        let back = expected.saturating_since(after);
        if ahead.max(back) < Self::LEAST {
            return None;
        }
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Some(Self(millis(ahead).saturating_sub(millis(back))))
    }

    /// Seconds of the step; negative when the clock was put back.
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0 / 1_000
    }

    /// Moves a time by the step. "At once" and "never" are no moments and stay.
    pub(super) fn apply(self, time: &mut Timestamp) {
        let millis = time.as_millis();
        if millis != 0 && *time != FOREVER {
            *time = Timestamp::from_millis(millis.saturating_add_signed(self.0).max(1));
        }
    }

    pub(super) fn apply_to(self, time: &mut Option<Timestamp>) {
        if let Some(time) = time {
            self.apply(time);
        }
    }
}

impl Queues {
    /// Follows a step of the wall clock. Every attempt, pause and token keeps its waiting time. No
    /// message expires for one full retry, as envelopes still have acceptance times of the old
    /// clock. Orders of operators until a time of day keep that time. `now` is a time after the
    /// step.
    pub fn clock_stepped(&mut self, step: Step, now: Timestamp) {
        self.spare_until(now);
        self.step_messages(step, now);
        for number in self.queues.numbers() {
            let Some(queue) = self.queues.get_mut(number) else {
                continue;
            };
            step.apply(&mut queue.used_at);
            step.apply(&mut queue.tell_from);
            step.apply_to(&mut queue.fetch_after);
            step.apply_to(&mut queue.paused_until);
        }
        self.gates.step(step);
        for (mut time, timer) in std::mem::take(&mut self.timers) {
            if matches!(timer, Timer::Queue(_)) {
                // The timer may belong to an order, which does not move. A timer without work is
                // harmless.
                self.timers.insert((time, timer));
            }
            step.apply(&mut time);
            self.timers.insert((time, timer));
        }
    }

    /// Bars expiry until each message had one full retry from now on, or one expiry period if that
    /// is shorter. After a start, too, the clock may differ from the clock of the acceptance times.
    pub fn spare_until(&mut self, now: Timestamp) {
        self.spared_until = now + self.policy.longest_retry().min(self.policy.expire);
    }

    fn step_messages(&mut self, step: Step, now: Timestamp) {
        let waiting = self.wheel.drain(&mut self.entries);
        self.wheel = Wheel::at(now);
        for slot in self.entries.slots() {
            let entry = &mut self.entries[slot];
            step.apply(&mut entry.accepted);
            if entry.standing != Standing::Held {
                step.apply(&mut entry.due);
            }
        }
        self.held.step(step);
        self.renew_ends();
        self.ages.step(step);
        for slot in waiting {
            self.wheel.insert(&mut self.entries, slot);
        }
    }
}
