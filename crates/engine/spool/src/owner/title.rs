//! What the delivery lease has to know of its owner (rule R4, and R6 for its second half).

use vere_units::Timestamp;

use super::replica::Replica;
use super::{Owner, Phase};

/// By what an owner has its group at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Title {
    /// The epoch under which it claimed the group.
    pub epoch: u64,
    /// Whether a full member answers it, and so answers no owner before it any more.
    pub fences: bool,
    /// Every full member has answered, under this epoch, what was sent then or later.
    pub confirmed: Option<Timestamp>,
}

impl Owner {
    /// The title; `None` before the group is claimed, and after another owner took it.
    #[must_use]
    pub fn title(&self) -> Option<Title> {
        if matches!(self.phase, Phase::Start | Phase::Fenced) {
            return None;
        }
        let fenced =
            |replica: &Replica| replica.is_full() && replica.is_up() && self.is_recorded(replica);
        Some(Title {
            epoch: self.record.epoch,
            fences: self.replicas.iter().any(fenced),
            confirmed: self.confirmed(),
        })
    }

    /// Also of members that the register may have made full without this owner knowing it yet: one that
    /// follows may have reached them alone.
    fn confirmed(&self) -> Option<Timestamp> {
        if !matches!(self.phase, Phase::Open) {
            return None;
        }
        let mut all = None;
        for replica in self.replicas.iter().filter(|one| one.is_required()) {
            let connection = replica.connections.get(replica.active?)?;
            let confirmed = connection.confirmed.filter(|_| replica.fault.is_none())?;
            all = Some(all.map_or(confirmed, |least: Timestamp| least.min(confirmed)));
        }
        all
    }
}
