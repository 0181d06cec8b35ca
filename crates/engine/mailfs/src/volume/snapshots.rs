//! Snapshots: a row keeps the root page of a checkpoint, and with the page every page and every pack of the state.

use std::mem;

use vere_ports::files::{CallId, Errno, Reply};
use vere_ports::storage::Storage;

use super::state::Volume;
use super::step::Moment;
use crate::rows::{Key, NAME_OCTETS_MAX, RowValue, SnapshotRow};

impl<S: Storage> Volume<S> {
    /// Keeps the present state of the chain under a name, until [`Self::end_kept_state`]. The reply is [`Reply::Done`], when the
    /// servers have the snapshot. Changes without a commit are outside the state: [`Self::sync`] brings the changes in before.
    pub fn keep_state(&mut self, now: Moment, name: &[u8], id: CallId) {
        self.at(now);
        self.begin_waiting(id);
        if name.is_empty() || name.len() > NAME_OCTETS_MAX {
            self.reply(id, Err(Errno::Inval));
            return;
        }
        let generation = self.chain.head().1;
        let waiting = &mut self.checkpoints.snapshots;
        waiting.push((generation, name.to_vec(), id));
        self.tend_checkpoints();
    }

    /// Ends a snapshot with the next commit. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Failures to read the row.
    pub fn end_kept_state(&mut self, now: Moment, name: &[u8]) -> Result<bool, Errno> {
        self.at(now);
        let key = Key::Snapshot(name).encode();
        let is_there = self.files.tree().contains(&key)?;
        if is_there {
            self.change_row(key, None);
            self.want_all(Vec::new());
        }
        Ok(is_there)
    }

    /// Snapshots whose state a checkpoint has get their rows; for the others a checkpoint begins.
    pub(super) fn go_on_with_snapshots(&mut self) {
        if self.checkpoints.snapshots.is_empty() {
            return;
        }
        if self.read_only.is_some() || self.checkpoints.is_broken {
            for (_, _, call) in mem::take(&mut self.checkpoints.snapshots) {
                self.reply(call, Err(Errno::Io));
            }
            return;
        }
        let covered = self
            .checkpoints
            .newest
            .map_or(0, |newest| newest.covers.get());
        let waiting = mem::take(&mut self.checkpoints.snapshots);
        let (ready, waiting): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|(generation, ..)| *generation <= covered);
        self.checkpoints.snapshots = waiting;
        for (_, name, call) in ready {
            self.keep_newest(&name, call);
        }
        if !self.checkpoints.snapshots.is_empty() && self.checkpoints.making.is_none() {
            self.begin_checkpoint();
            self.make_checkpoint();
        }
    }

    fn keep_newest(&mut self, name: &[u8], call: CallId) {
        let Some(newest) = self.checkpoints.newest else {
            return self.reply(call, Err(Errno::Io));
        };
        let (inodes, octets) = self.files.tree().pages().counts().unwrap_or_default();
        let row = SnapshotRow {
            generation: newest.covers.get(),
            time_ms: self.now.millis(),
            root: newest.root,
            inodes,
            octets,
        };
        self.put_row(Key::Snapshot(name).encode(), row.encode());
        self.want_all(vec![(call, Reply::Done)]);
    }
}
