//! The window in which a second fault loses acknowledged mail: only one node's memory holds the
//! mail, and no log does. With logs the window begins when the node with the log is lost with its
//! disk, and ends when another log is complete; the owner acknowledges nothing meanwhile. Without
//! logs the window lasts while only one full replica exists, and `replicas_min` decides whether the
//! gateway accepts mail in this time.

use super::phase::Phase;
use super::replica::{Fault, Replica};
use super::{Owner, OwnerEvent, ReplicaChange};

impl Owner {
    /// Returns the only replica that holds all acknowledged records, unless a log holds them too.
    pub(super) fn alone(&self) -> Option<usize> {
        let open = matches!(self.phase, Phase::Open);
        if !open || self.replicas.iter().any(has_log) {
            return None;
        }
        let replicas = self.replicas.iter().enumerate();
        let mut sound = replicas.filter(|(_, replica)| replica.is_sound());
        let (first, _) = sound.next()?;
        sound.next().is_none().then_some(first)
    }

    /// Emits events when this state begins and ends.
    pub(super) fn tell_who_is_alone(&mut self) {
        let alone = self.alone();
        let before = std::mem::replace(&mut self.alone, alone);
        if alone == before {
            return;
        }
        let changes = [
            (before, ReplicaChange::Joined),
            (alone, ReplicaChange::Alone),
        ];
        for (index, change) in changes {
            let Some(index) = index else { continue };
            let node = self.replicas[index].name.clone();
            self.events.push_back(OwnerEvent::Replica { node, change });
        }
    }
}

/// Whether the replica's log is complete. The log of an absent node counts unless it is known to be
/// lost.
fn has_log(replica: &Replica) -> bool {
    replica.keeps_log() && !matches!(replica.fault, Some(Fault::Lost | Fault::LogFailed))
}
