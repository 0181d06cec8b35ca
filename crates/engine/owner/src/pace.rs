//! A full member that is persistently slower than the others: measurement and consequences.
//!
//! R1 makes every change wait for the slowest full member. A persistently slow member costs more
//! than it contributes if other nodes can replace it. The window `slow_after` has [`PARTS`] parts.
//! Each member has one bit per part: whether its answers were late in this part. The owner stores
//! nothing per change: it samples one change of each member at a time.
//!
//! - S1: an answer is late if it comes more than `slow_lag` after the answers of `replicas_min`
//!   other members, and after more than twice the time of these members. A member with a log is
//!   compared with other members with logs, if such members exist. A part is slow if a twentieth of
//!   the sampled answers, or of the time, was late.
//! - S2: a member is slow from two thirds of slow parts on, while enough other members have less
//!   than a third, and until the member itself has less than a third. So no burst counts, and never
//!   are all members slow.
//! - S3: the owner measures nothing during a rebuild or while a member is absent.
//! - S4: the record loses the slow member (R2) when enough other members are full and connected:
//!   [`must_stay`](super::Owner::must_stay). Until then the owner rebuilds another node as an
//!   additional member.
//! - S5: a node that left as slow gets a pause, twice as long each time, unless members are
//!   lacking. Later the owner prefers nodes that left less often.

mod steps;

use std::time::Duration;

use vere_spoolwire::Txn;
use vere_units::Timestamp;

use super::config::OwnerConfig;

/// Number of parts of the window.
const PARTS: u32 = u32::BITS;
/// Slow parts from which on a member is slow.
const SLOW_FROM: u32 = 22;
/// Slow parts up to which a member keeps pace.
const WELL_UP_TO: u32 = 10;
/// Late share from which on a part is slow: one in `ONE_IN`.
const ONE_IN: u32 = 20;
/// Maximum number of times the pause is doubled.
const DOUBLED_MAX: u32 = 6;

/// Answers of a member, compared with the other members.
#[derive(Debug, Default)]
pub(super) struct Pace {
    mark: Option<Mark>,
    /// Current part: sampled answers, late answers, and their total lateness.
    looked_at: u32,
    late: u32,
    late_time: Duration,
    /// Slow parts of the window, the newest in the lowest bit.
    history: u32,
    slow: bool,
    /// Number of times the node left as slow, reduced with time.
    left: u32,
    /// End of the pause in which the node joins only if needed.
    rests_until: Timestamp,
    /// Time since which the member keeps pace.
    well_since: Timestamp,
}

/// The sampled change whose answer is outstanding.
#[derive(Debug, Clone, Copy)]
struct Mark {
    txn: Txn,
    since: Timestamp,
    /// Time when enough other members had answered.
    others: Option<Timestamp>,
}

impl Mark {
    /// Returns the time since the answers of the others, if beyond the allowance.
    fn lateness(&self, lag: Duration, now: Timestamp) -> Option<Duration> {
        let others = self.others?;
        let late = now.saturating_since(others);
        let allowed = lag.max(others.saturating_since(self.since));
        (late > allowed).then_some(late)
    }
}

impl Pace {
    /// Whether the member is persistently slower than the other members.
    pub(super) const fn is_slow(&self) -> bool {
        self.slow
    }

    /// Whether the node left as slow and its pause lasts.
    pub(super) fn rests(&self, now: Timestamp) -> bool {
        now < self.rests_until
    }

    /// Number of times the node left as slow of late.
    pub(super) const fn times_left(&self) -> u32 {
        self.left
    }

    /// Resets the measurement: the node has become a full member, or has stopped being one.
    pub(super) fn begin(&mut self, now: Timestamp) {
        let (left, rests_until) = (self.left, self.rests_until);
        *self = Self {
            left,
            rests_until,
            well_since: now,
            ..Self::default()
        };
    }

    /// Starts the pause of a member that left as slow.
    pub(super) fn leave(&mut self, pause: Duration, now: Timestamp) {
        self.left = self.left.saturating_add(1);
        self.rests_until = now + rest(pause, self.left);
    }

    /// Delays the node after a failed rebuild as an additional member.
    pub(super) fn put_off(&mut self, pause: Duration, now: Timestamp) {
        self.rests_until = self.rests_until.max(now + pause);
    }

    /// Drops the sample: the owner did not read answers for a while.
    pub(super) const fn forget_mark(&mut self) {
        self.mark = None;
    }

    /// Checks whether the answer to the sample has arrived, and how late.
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

    /// Ends a part of the window, plus `missed` parts in which the owner received nothing.
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

/// Pause of a node that left `left` times as slow.
fn rest(pause: Duration, left: u32) -> Duration {
    pause.saturating_mul(1 << left.saturating_sub(1).min(DOUBLED_MAX))
}
