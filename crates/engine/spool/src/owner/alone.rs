//! The window in which a second fault takes mail that was acknowledged: it is in the memory of one node, and in no
//! log. With logs it begins when the node that kept one is lost with its disk, and ends when another log has
//! everything; nothing is acknowledged meanwhile. Without logs it lasts as long as one full replica is there, and
//! `replicas_min` says whether mail is taken then.

use super::phase::Phase;
use super::replica::{Fault, Replica};
use super::{Owner, OwnerEvent, ReplicaChange};

impl Owner {
    /// The replica in whose memory alone everything is that was acknowledged.
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

    /// Says when that begins and ends.
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

/// Whether a log has everything, also when its node is away: unless it is known to be lost.
fn has_log(replica: &Replica) -> bool {
    replica.keeps_log() && !matches!(replica.fault, Some(Fault::Lost | Fault::LogFailed))
}
