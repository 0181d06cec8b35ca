//! Folders: their return, their union, removals that do not take place, and circles.

use vere_ports::files::{Errno, FileKind, Inode};

use super::inodes::{entry_of, names};
use super::{ConflictKind, Fate, Merge, is_alive};
use crate::rows::{EntryRow, Home, Key, ROOT_HOME, entries_prefix, entry_key, inode_key};

/// Folders above a folder; a longer way up is a circle.
const DEPTH_MAX: usize = 100_000;

impl Merge<'_> {
    /// The home for an entry: the folder of the home is there, or comes back; the root folder's for a home that nobody knows.
    pub(super) fn home_for(&mut self, home: Home) -> Result<Home, Errno> {
        let Some(folder) = self.folders.get(&home).copied() else {
            // Neither side has touched the folder, so that it is there.
            return Ok(home);
        };
        if is_alive(self.inode(folder)?.as_ref()) || self.bring_folder_back(folder)? {
            return Ok(home);
        }
        Ok(ROOT_HOME)
    }

    /// A folder that the winner has removed comes back with its name, and so do folders above. Returns whether the folder is
    /// there now.
    pub(super) fn bring_folder_back(&mut self, folder: Inode) -> Result<bool, Errno> {
        let (base, ours) = self.ours_of(folder)?;
        let Some(mut row) = ours.or(base).filter(|row| row.is_folder()) else {
            return Ok(false);
        };
        if self.fates.get(&folder) == Some(&Fate::Back) {
            return Ok(self.inode(folder)?.is_some());
        }
        self.fates.insert(folder, Fate::Back);
        row.links = row.links.max(2);
        self.put_all_ours(folder)?;
        self.put_inode(folder, &row)?;
        Ok(true)
    }

    /// A folder of the loser's and a folder of the winner's, both new and of one name, are one.
    pub(super) fn unite(&mut self, ours: Inode, winner: Inode) -> Result<(), Errno> {
        let (Some(from), Some(to)) = (self.inode(ours)?, self.inode(winner)?) else {
            return Ok(());
        };
        self.folders.insert(to.home_or_device, winner);
        self.united.insert(from.home_or_device, to.home_or_device);
        self.fates.insert(ours, Fate::Void);
        for key in self.tree.keys(&inode_key(ours))? {
            self.tree.remove(&key)?;
        }
        for key in self.tree.keys(&crate::rows::xattrs_prefix(ours))? {
            self.tree.remove(&key)?;
        }
        // Entries that were given before the folders met.
        let prefix = entries_prefix(from.home_or_device);
        for key in self.tree.keys(&prefix)? {
            let entry = entry_of(self.tree.get(&key)?.as_deref());
            self.tree.remove(&key)?;
            let name = key.get(prefix.len()..).unwrap_or_default();
            let Some(entry) = entry else { continue };
            match self.entry(to.home_or_device, name)? {
                None => self.put_entry(to.home_or_device, name, entry)?,
                Some(other) if is_both_folders(entry, other) && self.is_new(entry.inode)? => {
                    self.unite(entry.inode, other.inode)?;
                }
                Some(_) => {
                    let place = (entry.inode, entry.kind);
                    let made = self.put_beside(to.home_or_device, name, place)?;
                    self.conflict(ConflictKind::Name, entry.inode, &made);
                }
            }
        }
        Ok(())
    }

    fn is_new(&self, inode: Inode) -> Result<bool, Errno> {
        Ok(self.ours_of(inode)?.0.is_none())
    }

    /// Removes the folders that the loser has removed, the lowest ones first, unless something new lies there.
    pub(super) fn remove_folders(
        &mut self,
        mut left: Vec<(Home, Vec<u8>, Inode)>,
    ) -> Result<(), Errno> {
        loop {
            let before = left.len();
            let mut later = Vec::new();
            for (home, name, folder) in left {
                let row = self.inode(folder)?;
                let is_empty = match &row {
                    Some(row) => !self.tree.any(&entries_prefix(row.home_or_device))?,
                    None => true,
                };
                if is_empty {
                    self.tree.remove(&entry_key(home, &name))?;
                } else {
                    later.push((home, name, folder));
                }
            }
            left = later;
            if left.len() == before || left.is_empty() {
                break;
            }
        }
        for (_, name, folder) in left {
            self.fates.insert(folder, Fate::Spared);
            self.conflict(ConflictKind::Spared, folder, &name);
        }
        Ok(())
    }

    /// Renames of the loser's that put a folder into itself are void.
    pub(super) fn undo_circles(&mut self) -> Result<(), Errno> {
        let moved: Vec<(Vec<u8>, EntryRow)> = self
            .ours
            .iter()
            .filter_map(|(key, side)| {
                let now = entry_of(side.now.as_deref())?;
                let is_moved = now.kind == FileKind::Folder && side.base != side.now;
                is_moved.then(|| (key.clone(), now))
            })
            .collect();
        for (key, entry) in &moved {
            self.set_parent(key, entry.inode)?;
        }
        for (key, entry) in moved {
            if names(self.tree.get(&key)?.as_deref(), entry.inode)
                && self.is_in_circle(entry.inode)?
            {
                self.undo_rename(&key, entry.inode)?;
            }
        }
        Ok(())
    }

    /// The folder of a name is the parent of the folder with that name.
    fn set_parent(&mut self, key: &[u8], folder: Inode) -> Result<(), Errno> {
        let Ok(Key::Entry { home, .. }) = Key::decode(key) else {
            return Ok(());
        };
        if !names(self.tree.get(key)?.as_deref(), folder) {
            return Ok(());
        }
        if let (Some(mut row), Some(parent)) =
            (self.inode(folder)?, self.folders.get(&home).copied())
        {
            row.parent = parent.0;
            self.put_inode(folder, &row)?;
        }
        Ok(())
    }

    fn is_in_circle(&self, folder: Inode) -> Result<bool, Errno> {
        let mut at = folder;
        for _ in 0..DEPTH_MAX {
            if at == Inode::ROOT {
                return Ok(false);
            }
            let Some(row) = self.inode(at)? else {
                return Ok(false);
            };
            at = Inode(row.parent);
            if at == folder {
                return Ok(true);
            }
        }
        Ok(true)
    }

    fn undo_rename(&mut self, key: &[u8], folder: Inode) -> Result<(), Errno> {
        self.tree.remove(key)?;
        let old: Vec<Vec<u8>> = self
            .ours
            .iter()
            .filter(|(_, side)| names(side.base.as_deref(), folder))
            .map(|(key, _)| key.clone())
            .collect();
        let mut is_named = false;
        for key in old {
            let in_chain = self.tree.in_chain(&key)?;
            if names(in_chain.as_deref(), folder) {
                let other = entry_of(self.tree.get(&key)?.as_deref());
                if let (Some(other), Ok(Key::Entry { home, name })) = (other, Key::decode(&key)) {
                    self.put_beside(home, name, (other.inode, other.kind))?;
                }
                self.put_raw(&key, in_chain)?;
                self.set_parent(&key, folder)?;
                is_named = true;
            }
        }
        let name = match Key::decode(key) {
            Ok(Key::Entry { name, .. }) => name.to_vec(),
            _ => Vec::new(),
        };
        if !is_named && self.find_name(folder)?.is_none() {
            self.put_beside(ROOT_HOME, &name, (folder, FileKind::Folder))?;
        }
        self.conflict(ConflictKind::Circle, folder, &name);
        Ok(())
    }
}

fn is_both_folders(one: EntryRow, other: EntryRow) -> bool {
    one.kind == FileKind::Folder && other.kind == FileKind::Folder
}
