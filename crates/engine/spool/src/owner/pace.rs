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
//!   [`Owner::must_stay`]. Until then a node that is no member is rebuilt as one more.
//! - S5: who left so is left alone, twice as long each time, unless there are too few members; and it is
//!   chosen after others.

use std::time::Duration;

use vere_spoolwire::Txn;
use vere_units::Timestamp;

use super::config::OwnerConfig;
use super::replica::{Replica, Standing};
use super::{MEMBERS_MAX, Owner, OwnerEvent, Phase, ReplicaChange};

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

impl Owner {
    /// Compares the members, if that says anything now.
    pub(super) fn watch_pace(&mut self, now: Timestamp) {
        let part = self.config.slow_after / PARTS;
        if part.is_zero() {
            return;
        }
        if !self.is_comparable() {
            self.forget_marks();
            self.part_ends = now + part;
            return;
        }
        for index in 0..self.replicas.len() {
            if self.replicas[index].is_full() {
                self.look_at_pace(index, now);
            }
        }
        if now < self.part_ends {
            return;
        }
        let missed = now.saturating_since(self.part_ends).as_millis() / part.as_millis().max(1);
        let missed = u32::try_from(missed).unwrap_or(PARTS);
        for replica in self.replicas.iter_mut().filter(|replica| replica.is_full()) {
            replica.pace.end_part(part, missed, &self.config, now);
        }
        self.part_ends = now + part;
        self.judge_pace();
    }

    pub(super) fn forget_marks(&mut self) {
        for replica in &mut self.replicas {
            replica.pace.forget_mark();
        }
    }

    /// S3.
    fn is_comparable(&self) -> bool {
        let settled = |replica: &Replica| match replica.standing {
            Standing::Out => true,
            Standing::Full => replica.is_sound(),
            Standing::Syncing => false,
        };
        let open = matches!(self.phase, Phase::Open);
        open && self.record.full() > 1 && self.replicas.iter().all(settled)
    }

    fn look_at_pace(&mut self, index: usize, now: Timestamp) {
        let submitted = self.changes.submitted();
        let lag = self.config.slow_lag;
        let replica = &mut self.replicas[index];
        replica.pace.look(replica.acked, lag, now);
        if replica.pace.mark.is_none() && submitted > replica.acked {
            replica.pace.mark = Some(Mark {
                txn: submitted,
                since: now,
                others: None,
            });
        }
        let Some(mark) = replica.pace.mark.filter(|mark| mark.others.is_none()) else {
            return;
        };
        let logs = replica.logged;
        let others = self.replicas.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        // Who syncs is later than who does not, and no worse.
        let alike = others.filter(|(_, other)| other.is_full() && (other.logged || !logs));
        let (mut all, mut answered) = (0, 0);
        for (_, other) in alike {
            all += 1;
            answered += usize::from(other.acked >= mark.txn);
        }
        if answered > 0
            && answered >= self.config.replicas_min.min(all)
            && let Some(mark) = &mut self.replicas[index].pace.mark
        {
            mark.others = Some(now);
        }
    }

    /// S2. One member at a time.
    fn judge_pace(&mut self) {
        let parts = |replica: &Replica| replica.pace.history.count_ones();
        let well = |replica: &&Replica| replica.is_full() && parts(replica) <= WELL_UP_TO;
        let others = self.record.full().saturating_sub(1);
        let needed = self.config.replicas_min.min(others).max(1);
        let enough = self.replicas.iter().filter(well).count() >= needed;
        let slow = self.replicas.iter().any(|one| one.pace.slow);
        let slowest = self.replicas.iter_mut().filter(|one| one.is_full());
        let Some(one) = slowest.max_by_key(|one| (one.pace.slow, parts(one))) else {
            return;
        };
        let change = if one.pace.slow && parts(one) <= WELL_UP_TO {
            ReplicaChange::Keeps
        } else if !slow && enough && parts(one) >= SLOW_FROM {
            ReplicaChange::Slow
        } else {
            return;
        };
        one.pace.slow = change == ReplicaChange::Slow;
        let node = one.name.clone();
        self.events.push_back(OwnerEvent::Replica { node, change });
    }

    /// Full members, and there, without which no slow one leaves: those that must be, and two where there
    /// are to be two.
    fn must_stay(&self) -> usize {
        self.config.replicas_min.max(self.config.replicas.min(2))
    }

    /// S4: whether the group goes on without a member because it is slow.
    pub(super) fn goes_on_without(&self, slow: &Replica) -> bool {
        let stays = |replica: &&Replica| replica.is_sound() && replica.name != slow.name;
        slow.is_full()
            && slow.pace.slow
            && !self.is_rebuilding()
            && self.replicas.iter().filter(stays).count() >= self.must_stay()
    }

    fn is_rebuilding(&self) -> bool {
        let syncing = |replica: &Replica| replica.standing == Standing::Syncing;
        self.replicas.iter().any(syncing)
    }

    /// Members that there are to be: S4, one more before a slow one leaves.
    pub(super) fn members_wanted(&self) -> usize {
        let waits = |one: &Replica| one.is_full() && one.pace.slow && !self.goes_on_without(one);
        let spare = !self.is_rebuilding() && self.replicas.iter().any(waits);
        (self.config.replicas + usize::from(spare)).min(MEMBERS_MAX)
    }

    /// S5: whether a node that is no member may become one.
    pub(super) fn is_welcome(&self, replica: &Replica, now: Timestamp) -> bool {
        self.record.members.len() < self.must_stay() || !replica.pace.rests(now)
    }

    /// Whom to read from: a replica that holds everything and is there; the slow one last.
    pub(super) fn readable(&self) -> Option<usize> {
        let sound = |replica: &Replica| replica.is_sound();
        let well = |replica: &Replica| replica.is_sound() && !replica.pace.slow;
        let position = |which: fn(&Replica) -> bool| self.replicas.iter().position(which);
        position(well).or_else(|| position(sound))
    }
}
