//! The owner's measurement of its members, and its decisions about slow ones: rules S1 to S5.

use vere_units::Timestamp;

use super::super::phase::Phase;
use super::super::replica::{Replica, Standing};
use super::super::{MEMBERS_MAX, Owner, OwnerEvent, ReplicaChange};
use super::{Mark, PARTS, SLOW_FROM, WELL_UP_TO};

impl Owner {
    /// Compares the members, when a comparison is meaningful.
    pub(crate) fn watch_pace(&mut self, now: Timestamp) {
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

    pub(crate) fn forget_marks(&mut self) {
        for replica in &mut self.replicas {
            replica.pace.forget_mark();
        }
    }

    /// S3: whether the members can be compared now.
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
        // A logging member answers later than one without a log, and is not slow for this reason.
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

    /// S2: decides on at most one member.
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

    /// Number of connected full members that must remain when a slow one leaves: `replicas_min`,
    /// and at least two if two or more replicas are configured.
    fn must_stay(&self) -> usize {
        self.config.replicas_min.max(self.config.replicas.min(2))
    }

    /// S4: whether the group goes on without a slow member.
    pub(crate) fn goes_on_without(&self, slow: &Replica) -> bool {
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

    /// Number of members wanted; S4 adds a member before a slow one leaves.
    pub(crate) fn members_wanted(&self) -> usize {
        let waits = |one: &Replica| one.is_full() && one.pace.slow && !self.goes_on_without(one);
        let spare = !self.is_rebuilding() && self.replicas.iter().any(waits);
        (self.config.replicas + usize::from(spare)).min(MEMBERS_MAX)
    }

    /// S5: whether a node that is no member may become one.
    pub(crate) fn is_welcome(&self, replica: &Replica, now: Timestamp) -> bool {
        self.record.members.len() < self.must_stay() || !replica.pace.rests(now)
    }

    /// Chooses a replica for reads: sound and full, the slow one last.
    pub(crate) fn readable(&self) -> Option<usize> {
        let sound = |replica: &Replica| replica.is_sound();
        let well = |replica: &Replica| replica.is_sound() && !replica.pace.slow;
        let position = |which: fn(&Replica) -> bool| self.replicas.iter().position(which);
        position(well).or_else(|| position(sound))
    }
}
