//! Names: the loser's are given once more where the winner's leave room, and beside the winner's elsewhere.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use vere_ports::files::{Errno, FileKind, Inode};

use super::inodes::{entry_of, names};
use super::{ConflictKind, Fate, Merge, is_alive};
use crate::rows::{EntryRow, Home, InodeRow, Key, decode_entry, entries_prefix, entry_key};

/// Copies of a name that are tried.
pub(super) const NAMES_MAX: usize = 10_000;

/// A name that the loser has changed.
pub(super) struct Changed {
    home: Home,
    name: Vec<u8>,
    base: Option<EntryRow>,
    now: Option<EntryRow>,
}

impl Merge<'_> {
    pub(super) fn merge_entries(&mut self) -> Result<(), Errno> {
        let changed = self.changed_names();
        let mut given = Vec::new();
        let mut emptied = Vec::new();
        for change in changed {
            let winner = self.entry(change.home, &change.name)?;
            match change.now {
                None if winner == change.base => self.take_name(&change, &mut emptied)?,
                None => {}
                Some(_) => given.push(change),
            }
        }
        for change in given {
            self.give_name(&change)?;
        }
        self.name_the_returned()?;
        self.remove_folders(emptied)?;
        self.undo_circles()
    }

    fn changed_names(&self) -> Vec<Changed> {
        let changed = self.ours.iter().filter_map(|(key, side)| {
            let Ok(Key::Entry { home, name }) = Key::decode(key) else {
                return None;
            };
            Some(Changed {
                home,
                name: name.to_vec(),
                base: entry_of(side.base.as_deref()),
                now: entry_of(side.now.as_deref()).map(|entry| EntryRow {
                    inode: *self.renumbered.get(&entry.inode).unwrap_or(&entry.inode),
                    ..entry
                }),
            })
        });
        changed.filter(|change| change.base != change.now).collect()
    }

    /// The loser has taken a name away that the winner has left alone.
    fn take_name(
        &mut self,
        change: &Changed,
        emptied: &mut Vec<(Home, Vec<u8>, Inode)>,
    ) -> Result<(), Errno> {
        let Some(entry) = change.base else {
            return Ok(());
        };
        let fate = self.fates.get(&entry.inode).copied();
        if fate == Some(Fate::Spared) {
            self.conflict(ConflictKind::Spared, entry.inode, &change.name);
            return Ok(());
        }
        if entry.kind == FileKind::Folder && fate == Some(Fate::Removed) {
            emptied.push((change.home, change.name.clone(), entry.inode));
            return Ok(());
        }
        self.tree.remove(&entry_key(change.home, &change.name))?;
        Ok(())
    }

    /// The loser has given a name to an inode.
    fn give_name(&mut self, change: &Changed) -> Result<(), Errno> {
        let Some(entry) = change.now else {
            return Ok(());
        };
        let home = self.united.get(&change.home).copied();
        let home = home.unwrap_or(change.home);
        let is_new = self.ours_of(entry.inode)?.0.is_none();
        if !is_new && self.is_renamed_by_winner(entry.inode)? && self.left_a_name(entry.inode) {
            self.conflict(ConflictKind::Renamed, entry.inode, &change.name);
            return self.clear_place(home, change);
        }
        if self.inode(entry.inode)?.is_none() && !self.bring_folder_back(entry.inode)? {
            return Ok(());
        }
        let home = self.home_for(home)?;
        let winner = self.entry(home, &change.name)?;
        let is_spared = self.is_base_spared(change)?;
        match winner {
            Some(winner) if winner.inode == entry.inode => Ok(()),
            // The loser has put its inode in the place of one that the winner has left alone.
            Some(_) if winner == change.base && home == change.home && !is_spared => {
                self.put_entry(home, &change.name, entry)
            }
            Some(winner) => self.give_other_name(home, &change.name, (entry, winner, is_new)),
            None => self.put_entry(home, &change.name, entry),
        }
    }

    /// Whether what the loser has replaced must stay: the winner has changed it, or has put something there.
    fn is_base_spared(&mut self, change: &Changed) -> Result<bool, Errno> {
        let Some(base) = change.base else {
            return Ok(false);
        };
        let fate = self.fates.get(&base.inode).copied();
        if fate == Some(Fate::Removed)
            && let Some(row) = self.inode(base.inode)?.filter(InodeRow::is_folder)
            && self.tree.any(&entries_prefix(row.home_or_device))?
        {
            self.fates.insert(base.inode, Fate::Spared);
            return Ok(true);
        }
        Ok(fate == Some(Fate::Spared))
    }

    /// The name is not given after all; what lay there before may have another name from the loser.
    fn clear_place(&mut self, home: Home, change: &Changed) -> Result<(), Errno> {
        let Some(before) = change.base else {
            return Ok(());
        };
        let is_moved = self.ours.values().any(|side| {
            names(side.now.as_deref(), before.inode) && !names(side.base.as_deref(), before.inode)
        });
        if is_moved && self.entry(home, &change.name)? == change.base {
            self.tree.remove(&entry_key(home, &change.name))?;
        }
        Ok(())
    }

    /// The winner's inode has the name: two new folders become one, everything else gets a name beside.
    fn give_other_name(
        &mut self,
        home: Home,
        name: &[u8],
        (entry, winner, is_new): (EntryRow, EntryRow, bool),
    ) -> Result<(), Errno> {
        if is_new && entry.kind == FileKind::Folder && winner.kind == FileKind::Folder {
            return self.unite(entry.inode, winner.inode);
        }
        let made = self.put_beside(home, name, (entry.inode, entry.kind))?;
        self.conflict(ConflictKind::Name, entry.inode, &made);
        Ok(())
    }

    /// Gives an inode a name of a conflict copy.
    pub(super) fn put_beside(
        &mut self,
        home: Home,
        name: &[u8],
        (inode, kind): (Inode, FileKind),
    ) -> Result<Vec<u8>, Errno> {
        let home = self.home_for(home)?;
        let label = self.label;
        self.put_labelled(label, home, name, (inode, kind))
    }

    /// Inodes that came back have a name again: the one that the winner took away, if free. Folders above may come back too.
    fn name_the_returned(&mut self) -> Result<(), Errno> {
        let mut named = BTreeSet::new();
        loop {
            let mut fates = self.fates.iter();
            let next = fates.find(|(inode, fate)| **fate == Fate::Back && !named.contains(*inode));
            let Some(inode) = next.map(|(inode, _)| *inode) else {
                return Ok(());
            };
            named.insert(inode);
            self.name_again(inode)?;
        }
    }

    fn name_again(&mut self, inode: Inode) -> Result<(), Errno> {
        let is_named = {
            let mut local = self.tree.local_keys();
            local.any(|key| names(self.tree.get(key).ok().flatten().as_deref(), inode))
        };
        let row = self.inode(inode)?;
        let Some(row) = row.filter(|_| !is_named) else {
            self.conflict(ConflictKind::Returned, inode, &[]);
            return Ok(());
        };
        let kind = row.kind;
        let (home, name) = match self.lost_name(inode) {
            Some(place) => place,
            None => self.place_for_nameless(inode, kind)?,
        };
        let home = self.home_for(home)?;
        let name = if self.entry(home, &name)?.is_none() {
            self.put_entry(home, &name, EntryRow { inode, kind })?;
            name
        } else {
            self.put_beside(home, &name, (inode, kind))?
        };
        self.conflict(ConflictKind::Returned, inode, &name);
        Ok(())
    }

    /// The name that the winner has taken from an inode.
    pub(super) fn lost_name(&self, inode: Inode) -> Option<(Home, Vec<u8>)> {
        let of = |(key, side): (&Vec<u8>, &crate::tree::Side)| {
            let Ok(Key::Entry { home, name }) = Key::decode(key) else {
                return None;
            };
            let is_lost = names(side.base.as_deref(), inode) && !names(side.now.as_deref(), inode);
            is_lost.then(|| (home, name.to_vec()))
        };
        self.theirs.iter().find_map(of)
    }

    /// Whether the winner has given another name to an inode instead of an old one.
    pub(super) fn is_renamed_by_winner(&self, inode: Inode) -> Result<bool, Errno> {
        if !is_alive(self.inode(inode)?.as_ref()) {
            return Ok(false);
        }
        let (mut is_left, mut is_given) = (false, false);
        for side in self.theirs.values() {
            let (before, after) = (
                names(side.base.as_deref(), inode),
                names(side.now.as_deref(), inode),
            );
            is_left |= before && !after;
            is_given |= after && !before;
        }
        Ok(is_left && is_given)
    }

    /// Whether the loser has taken a name of the inode away.
    fn left_a_name(&self, inode: Inode) -> bool {
        let mut sides = self.ours.values();
        sides.any(|side| names(side.base.as_deref(), inode) && !names(side.now.as_deref(), inode))
    }

    /// A name of an inode, by a search: in the inode's home first, for a file has no way back to its folder.
    pub(super) fn find_name(&self, inode: Inode) -> Result<Option<(Home, Vec<u8>)>, Errno> {
        let near = entries_prefix(crate::rows::home_of(inode)).to_vec();
        let everywhere = entries_prefix(0).get(..1).unwrap_or_default().to_vec();
        for prefix in [near, everywhere] {
            let mut found = None;
            self.tree.visit(&prefix, None, &mut |key, value| {
                if let Ok(Key::Entry { home, name }) = Key::decode(key)
                    && decode_entry(value).is_ok_and(|entry| entry.inode == inode)
                {
                    found = Some((home, name.to_vec()));
                    return Ok(ControlFlow::Break(()));
                }
                Ok(ControlFlow::Continue(()))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}
