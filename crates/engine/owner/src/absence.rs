//! Catching up: a full member that left because of an absence and returns unchanged gets only the
//! missed changes.
//!
//! The owner keeps changes for the absent member from its removal on. The member's state is a
//! former state of the group, and the kept changes complete this state, if
//!
//! - the node's memory has the same incarnation, is complete and noted this owner on stable
//!   storage, so that no earlier or later owner changed the group there;
//! - the node has processed every change that it acknowledged, and no change that it was not sent;
//! - the node refused exactly the changes that the other replicas refused.
//!
//! If a condition fails, if the owner lost its memory (and is another owner by its life), or if
//! more than `lag_max` octets would have to be kept, the owner fills the node from nothing.

use super::Owner;
use super::config::OwnerError;
use super::replica::{Fault, Progress, Replica, Standing};
use super::title::Noted;

impl Replica {
    /// Whether the node has processed exactly the changes sent up to its reported progress.
    fn is_as_it_left(&self, progress: &Progress) -> bool {
        // Another incarnation would have reset `noted`.
        let ours = self.noted == Noted::Safe && !progress.syncing;
        ours && (self.acked..=self.position).contains(&progress.processed)
    }

    /// Whether the replica's results must match the group's although the replica has no vote.
    fn is_compared(&self) -> bool {
        let rebuilt = self.standing == Standing::Syncing && self.rebuild.is_some();
        rebuilt || self.awaited
    }
}

impl Owner {
    /// Handles the progress of a node that is no full member: catching up continues, or ends if the
    /// state does not match.
    pub(super) fn returned(&mut self, index: usize, progress: &Progress) -> Result<(), OwnerError> {
        let replica = &mut self.replicas[index];
        replica.awaited &= replica.is_as_it_left(progress);
        if !replica.awaited {
            return Ok(());
        }
        replica.position = progress.processed;
        self.acked(index, progress.acknowledged, &progress.refused)
    }

    /// Finds nodes without a vote whose refusals differ from the group's; such nodes are filled
    /// from nothing. A node that has become full was compared up to the change at which its vote
    /// begins.
    pub(super) fn compare(&mut self) {
        let decided = self.changes.decided();
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            let (from, until) = (replica.compared, replica.acked.min(decided));
            replica.compared = from.max(until);
            if !replica.is_compared() {
                continue;
            }
            let whole = replica.awaited;
            if self.changes.differs(from, until, index, whole) {
                replica.awaited = false;
                if replica.rebuild.is_some() {
                    replica.fault = Some(Fault::Diverged);
                }
            }
        }
    }

    /// Fails rebuilds and ends catching up where a node needs more kept changes than the limit.
    /// Catching up also ends when the group needs no more members.
    pub(super) fn give_up_laggards(&mut self) {
        let (base, decided) = (self.changes.base(), self.changes.decided());
        let (kept, most) = (self.changes.kept(), self.config.lag_max);
        let needed = self.record.full() < self.members_wanted();
        for replica in &mut self.replicas {
            let last = replica.acked == base && replica.acked < decided;
            let syncing = replica.standing == Standing::Syncing;
            // Changes kept during the absence may already reach the limit, also if the connection
            // breaks again.
            let most = if replica.awaited && syncing {
                most * 2
            } else {
                most
            };
            if syncing && replica.rebuild.is_some() {
                if last && kept > most {
                    replica.fault = Some(Fault::Lagging);
                }
            } else if !needed || last && kept > most {
                replica.awaited = false;
            }
        }
    }
}
