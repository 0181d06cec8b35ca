//! Rows about the volume: the winner's value counts, the winner's slots count as a whole, and copies of packs add up.

use std::collections::HashSet;

use bytes::Bytes;
use vere_ports::files::Errno;

use super::Merge;
use crate::rows::{Key, MEMBERS_MAX, PackRow, RowValue, decode_extents, slots_prefix};
use crate::tree::Side;

impl Merge<'_> {
    /// Merges all rows but those of inodes and names.
    pub(super) fn merge_facts(&mut self) -> Result<(), Errno> {
        let ours = self.ours;
        // Slots belong together: each has all keys. Who has changed slots from an earlier list may have other keys.
        let slots = slots_prefix();
        let has_slots = self.theirs.keys().any(|key| key.starts_with(&slots));
        let named = self.named_by_winner();
        for (key, side) in ours {
            let winner = self.tree.get(key)?;
            let value = match Key::decode(key) {
                Ok(Key::Entry { .. } | Key::Inode(_) | Key::Xattr { .. } | Key::Extents { .. }) => {
                    continue;
                }
                Ok(Key::Slot(_)) if has_slots => continue,
                // A collection has planned the removal before it saw the winner's commit.
                Ok(Key::Pack(pack)) if side.now.is_none() && named.contains(&pack) => continue,
                _ if winner == side.base => side.now.clone(),
                Ok(Key::Pack(_)) => both_copies(winner, side.now.as_deref()),
                _ => continue,
            };
            match value {
                Some(value) => self.tree.put(key, value.into())?,
                None => {
                    self.tree.remove(key)?;
                }
            }
        }
        Ok(())
    }

    /// Packs that extents of the winner's name, if the loser removes any pack.
    fn named_by_winner(&self) -> HashSet<u64> {
        let is_removal = |(key, side): (&Vec<u8>, &Side)| {
            side.now.is_none() && matches!(Key::decode(key), Ok(Key::Pack(_)))
        };
        let mut named = HashSet::new();
        if !self.ours.iter().any(is_removal) {
            return named;
        }
        for (key, side) in self.theirs {
            if let (Ok(Key::Extents { offset, .. }), Some(now)) = (Key::decode(key), &side.now) {
                let runs = decode_extents(offset, now).unwrap_or_default();
                let extents = runs.into_iter().filter_map(|run| run.extent);
                named.extend(extents.map(|extent| extent.pack.0));
            }
        }
        named
    }
}

/// A pack's row with the copies of both sides. A pack that the winner has removed is gone.
fn both_copies(winner: Option<Bytes>, ours: Option<&[u8]>) -> Option<Bytes> {
    let winner = winner?;
    let (Ok(mut row), Some(Ok(ours))) = (PackRow::decode(&winner), ours.map(PackRow::decode))
    else {
        return Some(winner);
    };
    for copy in ours.copies {
        let is_known = row.copies.iter().any(|of| of.account == copy.account);
        if !is_known && row.copies.len() < MEMBERS_MAX {
            row.copies.push(copy);
        }
    }
    Some(row.encode().into())
}
