//! The checkpoint at which an opening begins, and the commits that are read from there on.

use vere_ports::storage::Storage;

use super::{Opening, SLACK};
use crate::format::commit::Checkpoint;

impl<S: Storage> Opening<S> {
    /// The UID from which on commits are needed.
    pub(super) fn first_needed(&self) -> u32 {
        if let (Some(expected), Some(base)) = (self.expected, &self.base)
            && expected.generation() < base.covers.get()
        {
            return 1;
        }
        // A commit of unknown place lies behind earlier commits.
        let remembered = match (&self.placed, &self.remembered) {
            (Some(won), _) if won.uid_validity == self.uid_validity => Some(won.uid),
            (None, None) => None,
            _ => return 1,
        };
        let covered = self.base.map(|base| base.covered_uid);
        let first = match (covered, remembered) {
            (Some(covered), Some(remembered)) => covered.min(remembered),
            (Some(covered), None) => covered,
            // The journal's commit names a checkpoint that is old enough.
            (None, Some(remembered)) if self.limit.is_some() && !self.is_wide => remembered,
            (None, _) => return 1,
        };
        first.saturating_sub(SLACK).max(1)
    }

    /// The newest checkpoint that any commit names and whose covered commit is there.
    pub(super) fn best(&self) -> Option<Checkpoint> {
        let found = self.commits.values().flatten();
        let found = found.filter(|found| self.is_of_this_log(found));
        let named = found.filter_map(|found| found.record.checkpoint);
        named
            .filter(|named| !self.refused.contains(&named.root))
            .filter(|named| self.is_old_enough(named) && self.has_covered(named))
            .max_by_key(|named| named.covers)
    }

    pub(super) fn is_old_enough(&self, checkpoint: &Checkpoint) -> bool {
        self.limit
            .is_none_or(|limit| checkpoint.covers.get() <= limit)
    }

    fn has_covered(&self, checkpoint: &Checkpoint) -> bool {
        let covered_uid = self.covered_uid(checkpoint);
        match self.commits.get(&covered_uid) {
            Some(Some(found)) => found.record.generation == checkpoint.covers.get(),
            Some(None) => false,
            None => self.has_covered_unread(covered_uid),
        }
    }
}
