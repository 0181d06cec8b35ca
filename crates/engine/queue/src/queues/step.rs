//! A wall clock that is put ahead or back. All times of the queues are of that clock, so that operators and records
//! can be told of them; when it steps they move with it, and every wait stays as long as it was.

use std::time::Duration;

use vere_units::Timestamp;

use super::entries::Standing;
use super::wheel::Wheel;
use super::{Queues, Timer};
use crate::order::FOREVER;

/// By how much a clock stepped, in milliseconds: more than zero when it was put ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step(i64);

impl Step {
    /// What a clock that moves with the world never differs by between two looks: slewing (adjtime(3)) is slower.
    const LEAST: Duration = Duration::from_secs(30);

    /// The step between two looks at the wall clock, if there was one: what it moved by, and what passed in truth,
    /// by the monotonic clock.
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

    /// The same moment after the step. "At once" and "never" are no moments.
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
    /// Follows a step of the wall clock: every attempt, pause and token comes after the time that it would have come
    /// after without, and nothing expires for one full retry (the envelopes still say when they were accepted by
    /// the clock as it was). What operators ordered until a time of the day stays until then. `now` is behind the
    /// step.
    pub fn clock_stepped(&mut self, step: Step, now: Timestamp) {
        self.spare_until(now);
        self.step_messages(step, now);
        for number in 0..self.queues.end() {
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
                // It may be that of an order; one that comes for nothing does no harm.
                self.timers.insert((time, timer));
            }
            step.apply(&mut time);
            self.timers.insert((time, timer));
        }
    }

    /// Lets nothing expire before each message had one full retry from now on: after a start, too, nobody knows
    /// whether the clock that the ages are taken by is the one by which the messages were accepted.
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
        self.ages.step(step);
        for slot in waiting {
            self.wheel.insert(&mut self.entries, slot);
        }
    }
}
