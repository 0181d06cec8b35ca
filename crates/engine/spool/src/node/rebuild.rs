//! Filling a group from another node: RESET, then copies among the transactions (handled by
//! `ingest` and `check`), then COMPLETE.

use vere_ports::spool_log::SpoolLog;
use vere_spoolwire::{Seq, Txn};

use super::block::Done;
use super::group::Group;
use super::journal::{Duty, Promise, Until};
use super::memory::Memory;
use super::output::Output;

impl<L: SpoolLog> Group<L> {
    /// Discards the content of the group; transactions go on after `through`. With a log, the RESET
    /// itself is in the tail.
    pub(super) fn reset(&mut self, memory: &mut Memory, through: Txn) {
        self.discard(memory, through);
        self.given_up = false;
    }

    /// Discards the content of the group, but leaves a damaged group given up.
    pub(super) fn discard(&mut self, memory: &mut Memory, through: Txn) {
        if let Some(keeper) = self.keeper.take() {
            self.store.segments.close(memory, keeper);
        }
        self.store.reset(memory, through);
        (self.acknowledged, self.told) = (through, through);
        self.due = Done::default();
        self.lost = None;
        if let Some(journal) = &mut self.log {
            journal.forget(&mut self.store.segments, memory);
        }
    }

    /// Ends a rebuild: the group is complete. Answers ALIVE once the rebuild is safe; if the group
    /// was complete already, once every earlier transaction is.
    pub(super) fn complete(&mut self, seq: Seq, output: &mut Output) {
        let was_syncing = std::mem::take(&mut self.store.syncing);
        let until = if was_syncing {
            Until::Filled
        } else {
            Until::Synced
        };
        self.promise(seq, until, output);
    }

    /// Answers the request once `until` is fulfilled.
    pub(super) fn promise(&mut self, seq: Seq, until: Until, output: &mut Output) {
        if let Some(journal) = &mut self.log {
            let at = match journal.duty {
                Duty::Logs | Duty::Fills => Some(None),
                Duty::Ends(at) => Some(Some(at)),
                Duty::Rests => None,
            };
            if let Some(at) = at {
                journal.promises.push(Promise { seq, until, at });
                return;
            }
        }
        self.acknowledged = self.store.processed;
        self.acknowledge(output);
        self.alive(seq, output);
    }
}
