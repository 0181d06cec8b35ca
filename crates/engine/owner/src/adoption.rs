//! Which owner begins a group, and which members a takeover adopts (R3, R5).

use vere_spoolwire::Incarnation;
use vere_units::Timestamp;

use super::Owner;
use super::membership::{MemberState, Membership};
use super::replica::Replica;

impl Owner {
    /// Members of a group that no owner held before. Returns `None` while any node holds data of
    /// the group: then the record was lost, and an operator has to choose the authoritative node.
    /// Each member has the complete group before the record names it: a node that lost the group
    /// and creates it again reports an incomplete group.
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

    /// R5: whether only an operator can choose the authoritative node. The owner believes a node's
    /// report of another owner once the register is known to name no such owner.
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

    /// Members that a takeover adopts: full members that answered with the highest transaction. One
    /// adopted member must have a complete log, or the members left out must be empty.
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

    /// Like [`Owner::adopted`], with or without a log; also returns the index of one of the adopted
    /// members.
    pub(super) fn adoptable(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> Option<(Membership, usize)> {
        let waited = now.saturating_since(since) >= self.config.adopt_wait;
        let full = || self.replicas.iter().filter(|replica| replica.is_full());
        let answered = |replica: &Replica| replica.is_up() && replica.progress.is_some();
        // A node that knows of a later owner proves that the register has gone back to an outdated
        // record.
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

    /// Whether the incarnation of a node's memory is the recorded one.
    pub(super) fn is_recorded(&self, replica: &Replica) -> bool {
        let member = self.record.member(&replica.name);
        member.is_some_and(|member| Some(Incarnation(member.incarnation)) == replica.incarnation)
    }
}
