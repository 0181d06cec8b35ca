//! Sending and acknowledging: distribution of changes to replicas, and the decision that a change
//! is safe.

use vere_spoolwire::{NodeRefusal, Txn, WINDOW_TXNS_MAX};
use vere_units::Timestamp;

use super::changes::What;
use super::config::Link;
use super::config::OwnerError;
use super::phase::Phase;
use super::replica::{Fault, Replica};
use super::title::Noted;
use super::{Owner, OwnerEvent};
use vere_spoolwire::Batch;

/// Approximate limit of encoded output ahead of the socket, in octets.
const OUTPUT_AHEAD: usize = 256 << 10;

/// Changes that may be in flight whatever their length. A node acknowledges the end of a record with the next change that somebody waits for, so a long
/// change must not wait for the acknowledgement of such an end; and a node receives the next long change while the disk syncs the one before.
const CHANGES_FREE: u64 = 8;

/// Length of a frame from which replicas share its octets.
const LONG: usize = 64 << 10;

/// Outcome of a change that every required replica has answered.
enum Verdict {
    Done,
    Refused(NodeRefusal),
    /// Some replicas executed the change, some refused, and the change cannot be undone: the
    /// refusing replicas must leave first.
    Split,
}

impl Owner {
    /// Encodes changes for a replica, as far as its window allows.
    pub(super) fn fill(&mut self, index: usize) {
        if !matches!(self.phase, Phase::Open | Phase::Learning { .. }) {
            return;
        }
        let window_txns = WINDOW_TXNS_MAX / 2;
        let submitted = self.changes.submitted();
        let replica = &mut self.replicas[index];
        if !replica.takes_changes() || replica.fault.is_some() {
            return;
        }
        let Some(connection) = replica
            .active
            .and_then(|slot| replica.connections.get_mut(slot))
        else {
            return;
        };
        let rebuild = &mut replica.rebuild;
        let limit = rebuild
            .as_ref()
            .map_or(submitted, |rebuild| rebuild.limit(submitted));
        while replica.position < limit {
            let next = replica.position.next();
            let Some(entry) = self.changes.get(next) else {
                return;
            };
            let in_flight = self.changes.octets(replica.acked, replica.position);
            let changes = replica.position.0 - replica.acked.0;
            let is_full = in_flight + entry.len as u64 > self.config.window as u64;
            let full = is_full && changes >= CHANGES_FREE;
            let many = changes >= window_txns;
            if full || many || connection.waiting() >= OUTPUT_AHEAD {
                return;
            }
            if let Some(rebuild) = rebuild {
                rebuild.note(&entry.what);
            }
            match entry.len >= LONG {
                true => connection.push(self.changes.frame(next)),
                false => connection.write(|out| self.changes.encode(next, out)),
            }
            replica.position = next;
        }
    }

    /// Records that a replica acknowledged everything up to `through`, with these refusals.
    pub(super) fn acked(
        &mut self,
        index: usize,
        through: Txn,
        refused: &[(Txn, NodeRefusal)],
    ) -> Result<(), OwnerError> {
        let replica = &mut self.replicas[index];
        if !matches!(self.phase, Phase::Open)
            && let Some(progress) = &mut replica.progress
        {
            // Takeover compares the refusals of members.
            progress.acknowledged = progress.acknowledged.max(through);
            progress.refused.extend_from_slice(refused);
            progress.refused.sort_unstable();
            progress.refused.dedup();
        }
        if !matches!(self.phase, Phase::Open | Phase::Learning { .. }) {
            return Ok(());
        }
        if replica.fault == Some(Fault::Stalled) && through > replica.acked {
            // The disk of the replica makes progress again.
            replica.fault = None;
        }
        // A diverged replica may remain as the last full one, and does not repeat its
        // acknowledgements.
        let counts = replica.fault.is_none() || replica.differs();
        if !replica.needs_changes() || !counts {
            return Ok(());
        }
        if through > replica.position {
            return Err(OwnerError::Protocol);
        }
        let before = replica.acked;
        replica.acked = before.max(through);
        for &(txn, refusal) in refused {
            if txn > before
                && txn <= through
                && let Some(entry) = self.changes.get_mut(txn)
            {
                entry.refused.push((index, refusal));
            }
        }
        Ok(())
    }

    /// R1: acknowledges changes that every full replica holds, in order.
    pub(super) fn settle(&mut self) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        self.decide();
        if self.record.full() >= self.config.replicas_min && self.has_log() {
            self.changes.acknowledge();
            self.events.append(&mut self.untold);
        }
    }

    /// Decides changes that every required replica has answered. A decision stands even while too
    /// few full replicas exist for an acknowledgement: rebuilds copy its outcome.
    fn decide(&mut self) {
        let required = self.replicas.iter().filter(|replica| replica.is_required());
        let Some(through) = required.map(|replica| replica.acked).min() else {
            return;
        };
        let before = self.changes.decided();
        while self.changes.decided() < through {
            let txn = self.changes.decided().next();
            match self.verdict(txn) {
                Verdict::Done => self.done(txn),
                Verdict::Refused(refusal) => self.refused(txn, refusal),
                Verdict::Split => {
                    self.isolate_refusers(txn);
                    break;
                }
            }
            self.changes.decide(txn);
        }
        let through = self.changes.decided();
        if through > before {
            self.untold.push_back(OwnerEvent::Acked { through });
        }
        self.compare();
        self.trim();
    }

    fn verdict(&self, txn: Txn) -> Verdict {
        let Some(entry) = self.changes.get(txn) else {
            return Verdict::Done;
        };
        if entry.refused.is_empty() || entry.compensation {
            return Verdict::Done;
        }
        let votes = |replica: &Replica| replica.is_required() && replica.whole_after < txn;
        let counts = |index: usize| self.replicas.get(index).is_some_and(votes);
        let mut refusals = entry.refused.iter().filter(|(index, _)| counts(*index));
        let Some(&(_, refusal)) = refusals.next() else {
            return Verdict::Done;
        };
        let refusers = 1 + refusals.count();
        let all = self
            .replicas
            .iter()
            .filter(|replica| votes(replica))
            .count();
        if refusers == all || entry.what.made().is_some() {
            Verdict::Refused(refusal)
        } else {
            Verdict::Split
        }
    }

    fn done(&mut self, txn: Txn) {
        match self.changes.get(txn).map(|entry| &entry.what) {
            Some(What::Purge {
                queue, drop: true, ..
            }) => self.names.ended(*queue),
            Some(What::Create { queue, .. }) => self.names.made(*queue),
            _ => {}
        }
    }

    /// Records a refused change and undoes the change on replicas that executed it.
    fn refused(&mut self, txn: Txn, refusal: NodeRefusal) {
        self.untold.push_back(OwnerEvent::Refused { txn, refusal });
        let Some(entry) = self.changes.get_mut(txn) else {
            return;
        };
        entry.void = true;
        let everybody = self
            .replicas
            .iter()
            .enumerate()
            .filter(|(_, replica)| replica.needs_changes())
            .all(|(index, _)| entry.refused.iter().any(|(refuser, _)| *refuser == index));
        if let What::Create { queue, .. } = entry.what {
            self.names.not_made(queue);
        }
        if everybody {
            return;
        }
        let mut undo = Batch::new();
        for (queue, id) in entry.what.made().into_iter().flatten() {
            undo.delete(queue, id);
        }
        // A separate change per record: a replica may lack one record and have another.
        for operation in undo.into_operations() {
            let what = What::Batch {
                batch: Batch::of(operation),
                ids: Vec::new(),
            };
            self.changes.push(what, true);
        }
    }

    fn isolate_refusers(&mut self, txn: Txn) {
        let Some(entry) = self.changes.get(txn) else {
            return;
        };
        for (index, _) in &entry.refused {
            if let Some(replica) = self.replicas.get_mut(*index)
                && replica.is_required()
                && matches!(replica.fault, None | Some(Fault::Stalled))
            {
                // Keep other faults, which are worse: a diverged replica may remain as the last
                // full one.
                replica.fault = Some(Fault::Diverged);
            }
        }
    }

    /// Finds replicas that stopped acknowledging. The disk of a live node may hang, and the other
    /// replicas must not wait forever.
    pub(super) fn find_stalled(&mut self, now: Timestamp) {
        let sound = self.replicas.iter().filter(|replica| replica.is_sound());
        let Some(ahead) = sound.clone().map(|replica| replica.acked).max() else {
            return;
        };
        let learning = matches!(self.phase, Phase::Learning { .. });
        let noted = learning && sound.into_iter().any(|one| one.noted == Noted::Safe);
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            let behind = replica.acked < ahead || noted && replica.noted != Noted::Safe;
            if !behind || replica.acked != replica.moved_to || !replica.is_waited_for() {
                (replica.moved_at, replica.moved_to) = (now, replica.acked);
            } else if now.saturating_since(replica.moved_at) >= self.config.stall_after {
                replica.fault = Some(Fault::Stalled);
                // No record makes this replica full, and no outstanding swap can. So the owner
                // stops waiting for the replica even without the register, and ignores later
                // acknowledgements.
                if !replica.is_full() && replica.promised.is_none() {
                    let active = replica.active.into_iter();
                    let links = active.map(|address| Link {
                        node: index,
                        address,
                    });
                    self.drops
                        .extend(links.map(|link| (link, OwnerError::Stalled)));
                }
            }
        }
    }

    /// Removes changes that every replica has acknowledged.
    fn trim(&mut self) {
        self.give_up_laggards();
        let takers = self
            .replicas
            .iter()
            .filter(|replica| replica.needs_changes());
        let Some(needed) = takers.map(|replica| replica.acked).min() else {
            return;
        };
        while self.changes.pop(needed).is_some() {}
    }
}
