//! A full member that is persistently slower than the others: how that is measured, and what follows.
//!
//! R1 makes every change wait for the slowest full member. One that is slow for long, while others are
//! not, costs more than it is worth where there are other nodes. The window `slow_after` has [`PARTS`]
//! parts, and a member has one bit for each: whether its answers came late in it. Nothing is kept per
//! change: of each member one change at a time is looked at.
//!
//! - S1: late is an answer that comes more than `slow_lag` after those of `replicas_min` others, and later
//!   than twice the time that those took. Who keeps a log is compared with others that do, if there are.
//!   A part is slow if a twentieth of the answers looked at, or of the time, was late.
//! - S2: a member is slow from two thirds of slow parts on, while enough others have less than a third;
//!   until it has less than a third itself. So no burst counts, and never all are slow.
//! - S3: nothing is measured while a node is being rebuilt, or a member is not there.
//! - S4: the record loses it (R2) when so many others are full and there as must stay:
//!   [`must_stay`](super::Owner::must_stay). Until then a node that is no member is rebuilt as one more.
//! - S5: who left so is left alone, twice as long each time, unless there are too few members; and it is
//!   chosen after others.

mod steps;

use std::time::Duration;

use vere_spoolwire::Txn;
use vere_units::Timestamp;

use super::config::OwnerConfig;

/// Parts of the window.
const PARTS: u32 = u32::BITS;
/// From so many slow ones on a member is slow,
const SLOW_FROM: u32 = 22;
/// and with so many or fewer it is not.
const WELL_UP_TO: u32 = 10;
/// A part is slow when more than one in so many is late.
const ONE_IN: u32 = 20;
/// The rest is doubled so many times.
const DOUBLED_MAX: u32 = 6;

/// How a member answers, compared with the others.
#[derive(Debug, Default)]
pub(super) struct Pace {
    mark: Option<Mark>,
    /// In the part that goes on: answers looked at, and those that came late; how late together.
    looked_at: u32,
    late: u32,
    late_time: Duration,
    /// Slow parts of the window, the newest in the lowest bit.
    history: u32,
    slow: bool,
    /// How often it left for that.
    left: u32,
    /// Until then it is left alone, unless it is needed.
    rests_until: Timestamp,
    /// It was well since then.
    well_since: Timestamp,
}

/// The change whose answer is waited for.
#[derive(Debug, Clone, Copy)]
struct Mark {
    txn: Txn,
    since: Timestamp,
    /// When enough others had answered it.
    others: Option<Timestamp>,
}

impl Mark {
    /// How long after the others it is now, when that is too long.
    fn lateness(&self, lag: Duration, now: Timestamp) -> Option<Duration> {
        let others = self.others?;
        let late = now.saturating_since(others);
        let allowed = lag.max(others.saturating_since(self.since));
        (late > allowed).then_some(late)
    }
}

impl Pace {
    /// Whether the member is persistently slower than others.
    pub(super) const fn is_slow(&self) -> bool {
        self.slow
    }

    /// Whether the node left as too slow and is left alone.
    pub(super) fn rests(&self, now: Timestamp) -> bool {
        now < self.rests_until
    }

    /// How often it was too slow of late.
    pub(super) const fn times_left(&self) -> u32 {
        self.left
    }

    /// It has become a full member, or is one no more: what was measured says nothing.
    pub(super) fn begin(&mut self, now: Timestamp) {
        let (left, rests_until) = (self.left, self.rests_until);
        *self = Self {
            left,
            rests_until,
            well_since: now,
            ..Self::default()
        };
    }

    /// The group goes on without it, as it was too slow.
    pub(super) fn leave(&mut self, pause: Duration, now: Timestamp) {
        self.left = self.left.saturating_add(1);
        self.rests_until = now + rest(pause, self.left);
    }

    /// It could not be made one more member.
    pub(super) fn put_off(&mut self, pause: Duration, now: Timestamp) {
        self.rests_until = self.rests_until.max(now + pause);
    }

    /// What is waited for says nothing: time has passed in which nobody listened.
    pub(super) const fn forget_mark(&mut self) {
        self.mark = None;
    }

    /// Looks whether an answer came, and how late.
    fn look(&mut self, acked: Txn, lag: Duration, now: Timestamp) {
        let Some(mark) = self.mark.filter(|mark| acked >= mark.txn) else {
            return;
        };
        self.mark = None;
        self.looked_at = self.looked_at.saturating_add(1);
        if let Some(late) = mark.lateness(lag, now) {
            self.late += 1;
            self.late_time = self.late_time.saturating_add(late);
        }
    }

    /// A part is over, and `missed` more in which nothing was heard.
    fn end_part(&mut self, part: Duration, missed: u32, config: &OwnerConfig, now: Timestamp) {
        let waits = self
            .mark
            .is_some_and(|mark| mark.lateness(config.slow_lag, now).is_some());
        let often = self.late > 0 && self.late.saturating_mul(ONE_IN) >= self.looked_at;
        let slow = waits || often || self.late_time.saturating_mul(ONE_IN) >= part;
        for _ in 0..missed.min(PARTS) {
            self.history = self.history << 1 | u32::from(waits);
        }
        self.history = self.history << 1 | u32::from(slow);
        (self.looked_at, self.late, self.late_time) = (0, 0, Duration::ZERO);
        let rest = rest(config.slow_rest, self.left);
        if self.slow || self.history.count_ones() > WELL_UP_TO {
            self.well_since = now;
        } else if self.left > 0 && now.saturating_since(self.well_since) >= rest {
            (self.left, self.well_since) = (self.left - 1, now);
        }
    }
}

/// How long a node is left alone that left so often.
fn rest(pause: Duration, left: u32) -> Duration {
    pause.saturating_mul(1 << left.saturating_sub(1).min(DOUBLED_MAX))
}
