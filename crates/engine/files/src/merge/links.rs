//! What follows from names: links, the parents of folders, and the end of inodes without names.

use std::collections::BTreeMap;

use bytes::Bytes;
use vere_ports::files::{Errno, FileKind, Inode};

use super::inodes::entry_of;
use super::{Fate, Merge};
use crate::rows::{InodeRow, Key, extents_prefix, inode_key, xattrs_prefix};

/// Names that an inode has gained, less those lost, against the winner's state.
#[derive(Default)]
struct Gains {
    names: BTreeMap<Inode, i64>,
    /// Folders below a folder.
    folders: BTreeMap<Inode, i64>,
    parents: BTreeMap<Inode, Inode>,
}

impl Merge<'_> {
    pub(super) fn settle_links(&mut self) -> Result<(), Errno> {
        let gains = self.gains()?;
        let mut inodes: Vec<Inode> = gains.names.keys().copied().collect();
        inodes.extend(gains.folders.keys());
        inodes.extend(self.fates.keys());
        inodes.sort_unstable();
        inodes.dedup();
        for inode in inodes {
            self.settle_inode(inode, &gains)?;
        }
        Ok(())
    }

    fn gains(&self) -> Result<Gains, Errno> {
        let mut gains = Gains::default();
        let keys: Vec<Vec<u8>> = self.tree.local_keys().map(<[u8]>::to_vec).collect();
        for key in keys {
            let Ok(Key::Entry { home, .. }) = Key::decode(&key) else {
                continue;
            };
            let folder = self.folders.get(&home).copied();
            let before = entry_of(self.tree.in_chain(&key)?.as_deref());
            let now = entry_of(self.tree.get(&key)?.as_deref());
            for (entry, step) in [(before, -1), (now, 1)] {
                let Some(entry) = entry else { continue };
                add(&mut gains.names, entry.inode, step);
                if entry.kind == FileKind::Folder
                    && let Some(folder) = folder
                {
                    add(&mut gains.folders, folder, step);
                }
            }
            if let (Some(entry), Some(folder)) = (now, folder)
                && entry.kind == FileKind::Folder
            {
                gains.parents.insert(entry.inode, folder);
            }
        }
        Ok(gains)
    }

    fn settle_inode(&mut self, inode: Inode, gains: &Gains) -> Result<(), Errno> {
        let Some(mut row) = self.inode(inode)? else {
            return Ok(());
        };
        let winner = self.tree.in_chain(&inode_key(inode))?;
        let winner = winner.and_then(|row| InodeRow::decode(&row).ok());
        let gained = gains.names.get(&inode).copied().unwrap_or(0);
        let old = winner.as_ref().map_or(0, |row| i64::from(row.links));
        if row.is_folder() {
            let was_named = winner.as_ref().is_some_and(|row| row.links > 0);
            let names = i64::from(was_named).saturating_add(gained);
            let is_named = names > 0 || inode == Inode::ROOT;
            let below = gains.folders.get(&inode).copied().unwrap_or(0);
            let links = old.max(2).saturating_add(below).max(2);
            row.links = if is_named { narrow(links) } else { 0 };
            if let Some(parent) = gains.parents.get(&inode) {
                row.parent = parent.0;
            }
        } else {
            row.links = narrow(old.saturating_add(gained));
        }
        if row.links == 0 && !self.stays_nameless(inode, winner.as_ref()) {
            return self.end(inode);
        }
        self.put_inode(inode, &row)
    }

    /// Whether an inode without names is a file that a program has open.
    fn stays_nameless(&self, inode: Inode, winner: Option<&InodeRow>) -> bool {
        if self.fates.get(&inode) == Some(&Fate::Spared) {
            return false;
        }
        let of = |row: &Option<Bytes>| InodeRow::decode(row.as_deref()?).ok();
        let side = self.ours.get(&inode_key(inode)[..]);
        let has_ended = side.is_some_and(|side| {
            side.now.is_none() && of(&side.base).is_some_and(|row| row.links == 0)
        });
        if has_ended {
            // The program of the loser's that had the file open has closed the file.
            return false;
        }
        let ours = side.and_then(|side| of(&side.now));
        let is_open = ours.is_some_and(|row| row.links == 0 && row.kind == FileKind::File);
        is_open || winner.is_some_and(|row| row.links == 0)
    }

    /// Removes every row of an inode.
    fn end(&mut self, inode: Inode) -> Result<(), Errno> {
        self.tree.remove(&inode_key(inode))?;
        for prefix in [xattrs_prefix(inode), extents_prefix(inode)] {
            for key in self.tree.keys(&prefix)? {
                self.tree.remove(&key)?;
            }
        }
        if self.fates.insert(inode, Fate::Void) != Some(Fate::Removed) {
            self.out.moves.push((inode, None));
        }
        Ok(())
    }
}

fn add(counts: &mut BTreeMap<Inode, i64>, inode: Inode, step: i64) {
    let count = counts.entry(inode).or_default();
    *count = count.saturating_add(step);
}

fn narrow(links: i64) -> u32 {
    u32::try_from(links.max(0)).unwrap_or(u32::MAX)
}
