//! Key epochs of a mounted volume.
//!
//! The commit with the slots of a new epoch is sealed with the key of the epoch before: a mount with an old slot can read about
//! the revocation. The new epoch begins with the next commit. From there on a commit of an earlier epoch is no child of a commit:
//! a holder of revoked keys cannot append to the chain.

use vere_ports::storage::Storage;

use super::super::record::Won;
use super::super::state::Volume;
use crate::rows::slots_prefix;

impl<S: Storage> Volume<S> {
    /// An opened volume goes on with the epoch of the newest commit; the newest epoch of the slot begins as soon as the chain lists
    /// the slot.
    pub(crate) fn resume_epoch(&mut self, of_head: u16) {
        self.epochs.floor = of_head;
        if of_head < self.seals.epoch {
            self.epochs.next = Some(self.seals.epoch);
            self.seals.epoch = of_head;
        }
    }

    /// An epoch is to begin.
    pub(super) fn await_epoch(&mut self, epoch: u16) {
        self.epochs.next = Some(epoch);
    }

    /// Begins the awaited epoch, unless rows of slots wait or travel. Called when a commit is in the chain.
    pub(crate) fn tend_epoch(&mut self) {
        let Some(next) = self.epochs.next else {
            return;
        };
        let prefix = slots_prefix();
        let commits = &self.commits;
        let flights = commits.flights.iter().flat_map(|flight| &flight.rows);
        let mut on_their_way = flights.map(|row| &row.key).chain(&commits.pending);
        if on_their_way.any(|key| key.starts_with(&prefix)) {
            return;
        }
        self.epochs.next = None;
        self.epochs.behind = self.chain.end().1;
        self.seals.epoch = next;
    }

    /// A commit is in the chain.
    pub(crate) fn note_epoch(&mut self, won: Won) {
        if won.generation > self.epochs.behind {
            self.epochs.floor = self.epochs.floor.max(self.seals.epoch);
            let epoch = self.seals.epoch;
            self.follow.slots_since.take_if(|since| *since < epoch);
        }
        self.tend_epoch();
    }
}
