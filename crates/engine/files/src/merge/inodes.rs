//! Rows of inodes: attributes, extended attributes, contents.

use std::collections::BTreeSet;

use bytes::Bytes;
use vere_ports::files::{Errno, FileKind, FileTime, Inode};

use super::{ConflictKind, Fate, Merge, is_alive};
use crate::rows::{
    EntryRow, InodeRow, Key, decode_entry, extents_prefix, inode_key, xattrs_prefix,
};
use crate::tree::Sides;

/// Keys and values.
type Rows = Vec<(Vec<u8>, Bytes)>;
/// The value of a row before and after.
type Values = (Option<Bytes>, Option<Bytes>);

impl Merge<'_> {
    pub(super) fn merge_inodes(&mut self) -> Result<(), Errno> {
        let mut inodes: BTreeSet<Inode> = self.dirty.clone();
        for key in self.ours.keys() {
            if let Ok(Key::Inode(inode) | Key::Xattr { inode, .. } | Key::Extents { inode, .. }) =
                Key::decode(key)
            {
                inodes.insert(inode);
            }
        }
        for inode in inodes {
            let fate = self.merge_inode(inode)?;
            self.fates.insert(inode, fate);
        }
        Ok(())
    }

    fn merge_inode(&mut self, inode: Inode) -> Result<Fate, Errno> {
        let (base, ours) = self.ours_of(inode)?;
        let winner = self.inode(inode)?;
        let has_winner = is_alive(winner.as_ref());
        // A file without a name that a program has open is removed as well.
        let was_named = is_alive(base.as_ref());
        let is_nameless = ours
            .as_ref()
            .is_some_and(|row| row.links == 0 && !row.is_folder());
        let is_changed = match (&base, &winner) {
            (Some(base), Some(winner)) => self.winner_changed(inode, base, winner),
            _ => false,
        };
        if is_nameless && was_named && has_winner && is_changed {
            self.out.moves.push((inode, None));
            self.give_up_nameless(inode)?;
            return Ok(Fate::Spared);
        }
        let Some(ours) = ours else {
            // Writes of the loser before the removal must not be done again.
            self.out.moves.push((inode, None));
            return Ok(match winner {
                Some(_) if has_winner && is_changed => Fate::Spared,
                Some(_) => Fate::Removed,
                None => Fate::Void,
            });
        };
        if !self.has_theirs(inode) {
            self.put_ours(inode)?;
            return Ok(Fate::Kept);
        }
        match (base, winner) {
            // A file that both have brought back, or a number that a machine with a copy of the state folder has used as well.
            (None, Some(winner))
                if ours.kind == FileKind::File
                    && (winner != ours || !self.is_equal(inode, &ours, &winner)) =>
            {
                self.copy(inode, &ours, true)
            }
            (None, Some(_)) => Ok(self.void(inode)),
            (base, None) => self.bring_back(inode, base.as_ref(), &ours),
            (Some(base), Some(_)) if !has_winner && is_alive(Some(&base)) => {
                self.bring_back(inode, Some(&base), &ours)
            }
            (Some(base), Some(winner)) => self.merge_both(inode, &base, &ours, winner),
        }
    }

    /// An open file has a name after all.
    fn give_up_nameless(&mut self, inode: Inode) -> Result<(), Errno> {
        let keys = self.ours.keys();
        let is_row = |key: &&Vec<u8>| matches!(Key::decode(key), Ok(Key::Unnamed { inode: of, .. }) if of == inode);
        for key in keys.filter(is_row).cloned().collect::<Vec<_>>() {
            self.tree.remove(&key)?;
        }
        Ok(())
    }

    /// Both sides have the inode, with changed rows.
    fn merge_both(
        &mut self,
        inode: Inode,
        base: &InodeRow,
        ours: &InodeRow,
        winner: InodeRow,
    ) -> Result<Fate, Errno> {
        let is_ours = self.we_wrote(inode, base, ours);
        let is_theirs = wrote(self.theirs, inode)
            || winner.size != base.size
            || winner.generation != base.generation;
        if is_ours && is_theirs && !self.is_equal(inode, ours, &winner) {
            return self.copy(inode, ours, false);
        }
        let is_ours = is_ours && !is_theirs;
        for (key, side) in with_inode(self.ours, inode) {
            let stands = match Key::decode(&key) {
                Ok(Key::Xattr { .. }) => self.tree.get(&key)? == side.0,
                Ok(Key::Extents { .. }) => is_ours,
                _ => false,
            };
            if stands {
                self.put_raw(&key, side.1)?;
            }
        }
        if is_theirs {
            self.out.moves.push((inode, None));
        }
        let row = attributes(base, ours, winner, is_ours);
        self.put_inode(inode, &row)?;
        Ok(Fate::Kept)
    }

    /// The winner has removed an inode that the loser has changed.
    fn bring_back(
        &mut self,
        inode: Inode,
        base: Option<&InodeRow>,
        ours: &InodeRow,
    ) -> Result<Fate, Errno> {
        if ours.links == 0 || ours.is_folder() {
            // An open file without a name stays for its programs. A folder comes back when an entry wants so.
            if ours.links == 0 && !ours.is_folder() {
                self.put_all_ours(inode)?;
                return Ok(Fate::Kept);
            }
            return Ok(Fate::Void);
        }
        let has_new_name = self
            .ours
            .values()
            .any(|side| names(side.now.as_deref(), inode) && !names(side.base.as_deref(), inode));
        let is_changed = base.is_none_or(|base| {
            self.we_wrote(inode, base, ours)
                || (ours.mode, ours.uid, ours.gid, ours.mtime)
                    != (base.mode, base.uid, base.gid, base.mtime)
        });
        let has_xattrs = with_inode(self.ours, inode)
            .any(|(key, _)| matches!(Key::decode(&key), Ok(Key::Xattr { .. })));
        if !(has_new_name || is_changed || has_xattrs) {
            return Ok(self.void(inode));
        }
        self.put_all_ours(inode)?;
        Ok(Fate::Back)
    }

    fn void(&mut self, inode: Inode) -> Fate {
        self.out.moves.push((inode, None));
        Fate::Void
    }

    /// The winner keeps the inode; the content of the loser becomes another file beside.
    fn copy(&mut self, inode: Inode, ours: &InodeRow, is_new: bool) -> Result<Fate, Errno> {
        let Some(copy) = (self.new_inode)() else {
            return Err(Errno::NoSpc);
        };
        for (key, value) in self.all_ours(inode)? {
            let key = match Key::decode(&key) {
                Ok(Key::Xattr { name, .. }) => Key::Xattr { inode: copy, name }.encode(),
                Ok(Key::Extents { offset, .. }) => Key::Extents {
                    inode: copy,
                    offset,
                }
                .encode(),
                _ => continue,
            };
            self.tree.put(&key, value.into())?;
        }
        let mut row = ours.clone();
        row.links = 0;
        self.tree.put(&inode_key(copy), row.encode())?;
        self.out.moves.push((inode, Some(copy)));
        self.out.rewritten.insert(copy);
        self.fates.insert(copy, Fate::Kept);
        if is_new {
            self.renumbered.insert(inode, copy);
            return Ok(Fate::Void);
        }
        let (home, name) = self.name_of(inode)?;
        let made = self.put_beside(home, &name, (copy, ours.kind))?;
        self.conflict(ConflictKind::Content, copy, &made);
        Ok(Fate::Void)
    }

    /// A name of an inode: where either side has touched one, else in the inode's own home, else anywhere.
    fn name_of(&self, inode: Inode) -> Result<(crate::rows::Home, Vec<u8>), Errno> {
        let touched = self.ours.iter().chain(self.theirs).filter(|(_, side)| {
            names(side.now.as_deref(), inode) || names(side.base.as_deref(), inode)
        });
        let mut best = None;
        for (key, _) in touched {
            if let Ok(Key::Entry { home, name }) = Key::decode(key)
                && (best.is_none() || names(self.tree.get(key)?.as_deref(), inode))
            {
                best = Some((home, name.to_vec()));
            }
        }
        match best {
            Some((home, name)) if self.entry(home, &name)?.is_some() => Ok((home, name)),
            best => {
                let found = self.find_name(inode)?;
                let unknown = || (crate::rows::ROOT_HOME, inode.0.to_string().into_bytes());
                Ok(found.or(best).unwrap_or_else(unknown))
            }
        }
    }

    fn has_theirs(&self, inode: Inode) -> bool {
        with_inode(self.theirs, inode).next().is_some()
    }

    /// Whether the winner has changed more of an inode than its names.
    fn winner_changed(&self, inode: Inode, base: &InodeRow, winner: &InodeRow) -> bool {
        if base.is_folder() {
            return false;
        }
        let facts = |row: &InodeRow| (row.mode, row.uid, row.gid, row.size, row.generation);
        let others = with_inode(self.theirs, inode)
            .any(|(key, _)| !matches!(Key::decode(&key), Ok(Key::Inode(_))));
        others || facts(base) != facts(winner)
    }

    fn we_wrote(&self, inode: Inode, base: &InodeRow, ours: &InodeRow) -> bool {
        self.dirty.contains(&inode) || ours.size != base.size || wrote(self.ours, inode)
    }

    /// Whether both sides have written the same.
    fn is_equal(&self, inode: Inode, ours: &InodeRow, winner: &InodeRow) -> bool {
        let is_clean = !self.dirty.contains(&inode) && ours.size == winner.size;
        let keys = [self.ours, self.theirs].map(|sides| with_inode(sides, inode));
        is_clean
            && keys.into_iter().flatten().all(|(key, _)| {
                let ours = self.ours.get(&key).map(|side| &side.now);
                let theirs = self.theirs.get(&key);
                let ours = ours.or(theirs.map(|side| &side.base));
                let winner = self.tree.get(&key).ok().flatten();
                !matches!(Key::decode(&key), Ok(Key::Extents { .. })) || ours == Some(&winner)
            })
    }

    fn put_ours(&mut self, inode: Inode) -> Result<(), Errno> {
        for (key, side) in with_inode(self.ours, inode) {
            self.put_raw(&key, side.1)?;
        }
        Ok(())
    }

    /// Puts every row that the loser has of an inode.
    pub(super) fn put_all_ours(&mut self, inode: Inode) -> Result<(), Errno> {
        for (key, value) in self.all_ours(inode)? {
            self.tree.put(&key, value.into())?;
        }
        self.out.rewritten.insert(inode);
        Ok(())
    }

    /// Every row that the loser has of an inode, changed or not.
    fn all_ours(&self, inode: Inode) -> Result<Rows, Errno> {
        let mut keys = BTreeSet::from([inode_key(inode).to_vec()]);
        for prefix in [xattrs_prefix(inode), extents_prefix(inode)] {
            keys.extend(self.tree.keys(&prefix)?);
        }
        for sides in [self.ours, self.theirs] {
            keys.extend(with_inode(sides, inode).map(|(key, _)| key));
        }
        let mut rows = Vec::new();
        for key in keys {
            let value = match (self.ours.get(&key), self.theirs.get(&key)) {
                (Some(side), _) => side.now.clone(),
                (None, Some(side)) => side.base.clone(),
                (None, None) => self.tree.get(&key)?,
            };
            rows.extend(value.map(|value| (key, value)));
        }
        Ok(rows)
    }

    pub(super) fn put_raw(&mut self, key: &[u8], value: Option<Bytes>) -> Result<(), Errno> {
        match value {
            Some(value) => self.tree.put(key, value.into()),
            None => self.tree.remove(key).map(|_| ()),
        }
    }
}

/// The rows of an inode among the changes of a side.
fn with_inode(sides: &Sides, inode: Inode) -> impl Iterator<Item = (Vec<u8>, Values)> + '_ {
    let prefixes = [
        inode_key(inode),
        xattrs_prefix(inode),
        extents_prefix(inode),
    ];
    prefixes.into_iter().flat_map(move |prefix| {
        let rows = sides.range(prefix.to_vec()..);
        rows.take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(key, side)| (key.clone(), (side.base.clone(), side.now.clone())))
    })
}

/// Whether a side has changed extents of a file.
fn wrote(sides: &Sides, inode: Inode) -> bool {
    let prefix = extents_prefix(inode);
    let mut rows = sides.range(prefix.to_vec()..);
    rows.next().is_some_and(|(key, _)| key.starts_with(&prefix))
}

/// Whether a row is an entry of an inode.
pub(super) fn names(row: Option<&[u8]>, inode: Inode) -> bool {
    entry_of(row).is_some_and(|entry| entry.inode == inode)
}

/// The entry of a row of nine octets.
pub(super) fn entry_of(row: Option<&[u8]>) -> Option<EntryRow> {
    row.and_then(|row| decode_entry(row).ok())
}

/// Facts that both sides have: the winner's change counts, then the loser's.
fn attributes(base: &InodeRow, ours: &InodeRow, winner: InodeRow, content: bool) -> InodeRow {
    fn pick<T: PartialEq + Copy>(base: T, ours: T, winner: T) -> T {
        if winner == base { ours } else { winner }
    }
    let newer = |ours: FileTime, winner: FileTime| ours.max(winner);
    let mut row = winner;
    row.mode = pick(base.mode, ours.mode, row.mode);
    row.uid = pick(base.uid, ours.uid, row.uid);
    row.gid = pick(base.gid, ours.gid, row.gid);
    row.atime = newer(ours.atime, row.atime);
    row.ctime = newer(ours.ctime, row.ctime);
    row.mtime = pick(base.mtime, ours.mtime, row.mtime);
    if content {
        row.size = ours.size;
        row.generation = ours.generation.max(row.generation);
        row.mtime = ours.mtime;
    }
    row
}
