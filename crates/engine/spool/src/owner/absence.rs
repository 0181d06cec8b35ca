//! A full member that left because it was away, and comes back as it was: instead of everything it gets
//! the changes that it missed.
//!
//! They are kept for it from when it leaves. What it holds is a state that all others have been in, and
//! what it lacks is what follows, if
//!
//! - its memory is the same, whole, and this owner's for good: no owner before or after changed anything;
//! - it has processed what it acknowledged, and no more than it was sent;
//! - it refused what the others refused, and nothing else.
//!
//! When one of these is not so, when the owner forgot (it is another one), and when more would have to be
//! kept than `lag_max`, the node is filled from nothing.

use super::Owner;
use super::config::OwnerError;
use super::replica::{Fault, Progress, Replica, Standing};
use super::title::Noted;

impl Replica {
    /// Whether it holds what it was sent up to where it says that it is, and nothing else.
    fn is_as_it_left(&self, progress: &Progress) -> bool {
        // Under another incarnation it would not be noted.
        let ours = self.noted == Noted::Safe && !progress.syncing;
        ours && (self.acked..=self.position).contains(&progress.processed)
    }

    /// Whether it has to have done what the others did without having a vote.
    fn is_compared(&self) -> bool {
        let rebuilt = self.standing == Standing::Syncing && self.rebuild.is_some();
        rebuilt || self.awaited
    }
}

impl Owner {
    /// A node that is no full member tells how far it is: it goes on there, or is awaited no more.
    pub(super) fn returned(&mut self, index: usize, progress: &Progress) -> Result<(), OwnerError> {
        let replica = &mut self.replicas[index];
        replica.awaited &= replica.is_as_it_left(progress);
        if !replica.awaited {
            return Ok(());
        }
        replica.position = progress.processed;
        self.acked(index, progress.acknowledged, &progress.refused)
    }

    /// Finds nodes without a vote that did what the others refused, or the other way round: they are filled
    /// from nothing. One that is full by then has been looked at up to where its vote begins.
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

    /// Gives up those for whom too much would have to be kept, or that are not needed any more.
    pub(super) fn give_up_laggards(&mut self) {
        let (base, decided) = (self.changes.base(), self.changes.decided());
        let (kept, most) = (self.changes.kept(), self.config.lag_max);
        let needed = self.record.full() < self.members_wanted();
        for replica in &mut self.replicas {
            let last = replica.acked == base && replica.acked < decided;
            let syncing = replica.standing == Standing::Syncing;
            // What was kept while it was away may be as much as that already, also when it breaks off once more.
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
