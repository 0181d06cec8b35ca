//! Who begins a group, and whom a takeover goes on with (R3, R5).

use vere_spoolwire::Incarnation;
use vere_units::Timestamp;

use super::Owner;
use super::membership::{MemberState, Membership};
use super::replica::Replica;

impl Owner {
    /// A group that nobody held before gets its members. None while any node holds something of it:
    /// then the record was lost, and an operator has to say which node counts. A member has it whole before
    /// the record says so: one that makes it anew, for it is gone there, says that it is incomplete.
    pub(super) fn formed(&self, since: Timestamp, now: Timestamp) -> Option<Membership> {
        let up = |replica: &&Replica| replica.is_made();
        if self.replicas.iter().any(Replica::is_used) {
            return None;
        }
        let there = self.replicas.iter().filter(up).count();
        let waited = now.saturating_since(since) >= self.config.adopt_wait;
        let enough =
            there >= self.config.replicas || (waited && there >= self.config.replicas_min.max(1));
        if !enough {
            return None;
        }
        let chosen = self.replicas.iter().filter(up).take(self.config.replicas);
        let add = |record: Membership, replica: &Replica| {
            let incarnation = replica.incarnation.unwrap_or(Incarnation(0));
            record.with(&replica.name, incarnation, MemberState::Full)
        };
        Some(chosen.fold(self.record.clone(), add))
    }

    /// R5: whether nobody but an operator can say which node counts. What a node says about another
    /// owner is believed once the register does not know of one.
    pub(super) fn is_left_to_operator(&self) -> bool {
        let sure = self.register.known.is_some();
        if self.record.members.is_empty() {
            return sure && self.replicas.iter().any(Replica::is_used);
        }
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let empty = |replica: &Replica| replica.is_empty(self.is_recorded(replica));
        let lost = self.record.full() > 0 && full().all(empty);
        lost || sure && full().any(|replica| replica.fenced)
    }

    /// Which members a takeover goes on with: full ones that answered with the highest transaction, when
    /// one of them has a log that holds everything, or the others hold nothing.
    pub(super) fn adopted(&self, since: Timestamp, now: Timestamp) -> Option<Membership> {
        let (record, _) = self.adoptable(since, now)?;
        let logged = |replica: &Replica| replica.logged && record.member(&replica.name).is_some();
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let left_out = full().filter(|replica| record.member(&replica.name).is_none());
        let safe = !self.config.durable
            || self.replicas.iter().any(logged)
            || left_out
                .into_iter()
                .all(|replica| replica.is_empty(self.is_recorded(replica)));
        safe.then_some(record)
    }

    /// The same, with a log or without, and the place of one of them.
    pub(super) fn adoptable(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> Option<(Membership, usize)> {
        let waited = now.saturating_since(since) >= self.config.adopt_wait;
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let answered = |replica: &Replica| replica.is_up() && replica.progress.is_some();
        // One that knows of a later owner: the register has gone back, and names who no longer counts.
        let fenced = full().any(|replica| replica.fenced);
        if fenced || !waited && !full().all(answered) {
            return None;
        }
        let adoptable = |replica: &Replica| {
            let progress = replica.progress.as_ref().filter(|_| replica.is_up())?;
            let whole = self.is_recorded(replica) && !progress.syncing && replica.fault.is_none();
            whole.then_some(progress.processed)
        };
        let highest = full().filter_map(adoptable).max()?;
        let highest_of_all =
            |replica: &Replica| replica.is_full() && adoptable(replica) == Some(highest);
        let leader_at = self.replicas.iter().position(highest_of_all)?;
        let leader = &self.replicas[leader_at];
        let mut record = self.record.clone();
        record.members.retain(|member| {
            let replica = full().find(|replica| replica.name == member.node);
            replica.is_some_and(|replica| {
                adoptable(replica) == Some(highest) && replica.agrees(leader)
            })
        });
        Some((record, leader_at))
    }

    /// Whether a node's memory is the one that the record speaks of.
    pub(super) fn is_recorded(&self, replica: &Replica) -> bool {
        let member = self.record.member(&replica.name);
        member.is_some_and(|member| Some(Incarnation(member.incarnation)) == replica.incarnation)
    }
}
