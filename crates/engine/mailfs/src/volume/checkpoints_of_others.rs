//! Checkpoints of other mounts: the newest one serves every mount, and of two that cover the same commits the one with a row.

use vere_ports::storage::Storage;

use super::state::Volume;
use super::state::follow::Coming;
use crate::format::commit::Checkpoint;
use crate::rows::{Key, RowValue, StateRow};

impl<S: Storage> Volume<S> {
    /// A commit of the chain is applied that is not the next commit of the mount: the mount goes on with a newer checkpoint.
    pub(super) fn follow_checkpoint(&mut self, coming: &Coming) {
        // UIDs in commits before the last change of the lead are those of another log.
        let since = self.lead_since();
        if coming.won.generation < since {
            return;
        }
        if let Some(named) = coming.checkpoint {
            self.checkpoints.see(named.root, coming.won.generation);
            if self.checkpoints.is_newest(&named) {
                self.take_checkpoint(named);
            }
        }
        let Some(newest) = self.checkpoints.newest else {
            return;
        };
        // Pages without a row of a checkpoint are garbage some days later.
        if newest.covers.get() < since {
            return;
        }
        let key = Key::State(newest.covers.get()).encode();
        let rows = coming.rows.iter().filter(|row| row.key == key);
        let mut rows = rows.filter_map(|row| StateRow::decode(row.value.as_deref()?).ok());
        if let Some(row) = rows.next_back().filter(StateRow::has_pages)
            && row.root != newest.root
        {
            self.take_checkpoint(Checkpoint {
                covered_uid: row.uid,
                root: row.root,
                ..newest
            });
        }
    }

    fn take_checkpoint(&mut self, checkpoint: Checkpoint) {
        let tree = self.files.tree_mut();
        let left = tree.covered(Some(checkpoint.root), checkpoint.covers.get());
        self.checkpoints.adopt(checkpoint, left);
        self.mirror_pages_later();
    }
}
