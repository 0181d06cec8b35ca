//! Steps by which the owner secures and reports its title.

use vere_spoolwire::{Request, Seq};
use vere_units::Timestamp;

use super::super::Owner;
use super::super::config::Link;
use super::super::phase::Phase;
use super::super::replica::{Fault, Replica};
use super::{Noted, Title};

impl Owner {
    /// Returns the title; `None` before the claim, and after another owner took the group.
    #[must_use]
    pub fn title(&self) -> Option<Title> {
        if matches!(self.phase, Phase::Start | Phase::Fenced) {
            return None;
        }
        let fences = |replica: &Replica| {
            let noted = replica.noted == Noted::Safe && replica.is_up();
            noted && replica.is_full() && self.is_recorded(replica)
        };
        Some(Title {
            epoch: self.record.epoch,
            fences: self.replicas.iter().any(fences),
            confirmed: self.confirmed(),
        })
    }

    /// Asks members to confirm that they have noted this owner on stable storage.
    pub(crate) fn secure_title(&mut self) {
        if !matches!(self.phase, Phase::Claimed { .. } | Phase::Learning { .. }) {
            return;
        }
        if self.record.members.is_empty() {
            self.make_whole();
            return;
        }
        for index in 0..self.replicas.len() {
            let replica = &self.replicas[index];
            // COMPLETE would declare an incomplete group complete.
            let whole = replica
                .progress
                .as_ref()
                .is_some_and(|progress| !progress.syncing);
            let asks = replica.noted == Noted::No && whole && replica.is_sound();
            if asks && self.is_recorded(replica) {
                self.ask_noted(index);
            }
        }
    }

    /// Declares a new group complete on every node, with no content. A node that creates the group
    /// later gets no such declaration, because the record may then name content.
    fn make_whole(&mut self) {
        if self.replicas.iter().any(Replica::is_used) {
            return;
        }
        for index in 0..self.replicas.len() {
            let replica = &self.replicas[index];
            let asked = matches!(replica.noted, Noted::Asked(_));
            if replica.is_up() && !asked && !replica.is_made() {
                self.ask_noted(index);
            }
        }
    }

    fn ask_noted(&mut self, index: usize) {
        let seq = self.next_seq;
        let replica = &mut self.replicas[index];
        let Some(connection) = replica.active_connection() else {
            return;
        };
        connection.write(|out| Request::Complete.encode(out, seq));
        replica.noted = Noted::Asked(seq);
        self.next_seq = Seq(seq.0 + 1);
    }

    /// Handles a node's confirmation that everything before a request is safe.
    pub(crate) fn title_noted(&mut self, link: Link, seq: Seq) {
        let replica = &mut self.replicas[link.node];
        if replica.noted == Noted::Asked(seq) && replica.active == Some(link.address) {
            replica.noted = Noted::Safe;
            if let Some(progress) = &mut replica.progress {
                progress.syncing = false;
            }
            if replica.fault == Some(Fault::Stalled) {
                replica.fault = None;
            }
        }
    }

    /// Returns the time for which all required members have answered. Members that the register may
    /// have made full without this owner's knowledge count: a later owner may have reached only
    /// them.
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
