//! Changes whose base is gone: the log has lost the commit below the changes, and no commit tells of later changes by others.
//! The changes are merged with the newest state all the same. Where the value below a change is known, the merge is the usual
//! one; elsewhere the newest state counts as changed by others: contents become files of their own, nothing is removed, and
//! attributes stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use bytes::Bytes;
use vere_ports::files::{Errno, FileKind, Inode};

use crate::merge::{Conflict, ConflictKind, Coverage, Label, Merged, Stray, Strays, merge_strays};
use crate::rows::{
    EntryRow, Home, InodeRow, Key, decode_entry, encode_entry, entry_key, extents_prefix, inode_key,
};
use crate::tree::{Side, Sides, Tree};

/// Merges changes whose base is gone onto a tree that has the newest state, with all of its pages.
///
/// # Errors
/// Failures to read or write rows.
pub fn bring(
    tree: &mut Tree,
    strays: &Strays,
    new_inode: &mut dyn FnMut() -> Option<Inode>,
    label: &Label,
) -> Result<Merged, Errno> {
    let mut sides = Preparation {
        tree,
        strays,
        ours: Sides::new(),
        theirs: Sides::new(),
        void: BTreeSet::new(),
        conflicts: Vec::new(),
    };
    sides.find_void()?;
    sides.put_rows()?;
    sides.put_unnamed_contents()?;
    sides.put_their_extents()?;
    sides.find_renamed()?;
    let Preparation {
        ours,
        theirs,
        void,
        conflicts,
        ..
    } = sides;
    let dirty = strays.contents.keys().filter(|of| !void.contains(of));
    let dirty: BTreeSet<Inode> = dirty.copied().collect();
    let of = (&ours, &theirs, strays);
    let mut merged = merge_strays(tree, of, &dirty, new_inode, label)?;
    merged.conflicts.splice(0..0, conflicts);
    Ok(merged)
}

/// Names of inodes: homes of folders, and names there.
type Names = HashMap<Inode, Vec<(Home, Vec<u8>)>>;

/// The sides of a merge, as far as known.
struct Preparation<'a> {
    tree: &'a Tree,
    strays: &'a Strays,
    ours: Sides,
    theirs: Sides,
    /// Inodes without changed content that are gone.
    void: BTreeSet<Inode>,
    conflicts: Vec<Conflict>,
}

impl Preparation<'_> {
    /// A file that others have removed stays removed if the changes have none of its content.
    fn find_void(&mut self) -> Result<(), Errno> {
        let created: BTreeSet<Inode> = self.given().into_iter().map(|(_, of)| of).collect();
        for (key, stray) in &self.strays.rows {
            let (Ok(Key::Inode(inode)), Some(now)) =
                (Key::decode(key), stray.now.as_deref().and_then(decode))
            else {
                continue;
            };
            let was_there = match &stray.base {
                Some(base) => base.is_some(),
                None => !created.contains(&inode),
            };
            let has_content = self.strays.contents.contains_key(&inode)
                || self.has_rows(&extents_prefix(inode))
                || now.size == 0;
            if was_there
                && now.kind == FileKind::File
                && !has_content
                && !self.tree.contains(key)?
            {
                self.void.insert(inode);
                self.tell(ConflictKind::Attributes, inode, &[]);
            }
        }
        Ok(())
    }

    fn tell(&mut self, kind: ConflictKind, inode: Inode, name: &[u8]) {
        let name = name.to_vec();
        self.conflicts.push(Conflict { kind, inode, name });
    }

    fn has_rows(&self, prefix: &[u8]) -> bool {
        let mut rows = self.strays.rows.range(prefix.to_vec()..);
        rows.next().is_some_and(|(key, _)| key.starts_with(prefix))
    }

    /// Names that the changes give: keys and inodes.
    fn given(&self) -> Vec<(Vec<u8>, Inode)> {
        let rows = self.strays.rows.iter();
        let given = rows.filter_map(|(key, stray)| {
            let is_entry = matches!(Key::decode(key), Ok(Key::Entry { .. }));
            let entry = entry_of(stray.now.as_deref()).filter(|_| is_entry)?;
            Some((key.clone(), entry.inode))
        });
        given.collect()
    }

    fn put_rows(&mut self) -> Result<(), Errno> {
        let created: BTreeSet<Inode> = self.given().into_iter().map(|(_, of)| of).collect();
        for (key, stray) in &self.strays.rows {
            let there = self.tree.get(key)?;
            let mut now = stray.now.clone();
            let base = match Key::decode(key) {
                Ok(Key::Inode(inode) | Key::Xattr { inode, .. } | Key::Extents { inode, .. })
                    if self.void.contains(&inode) =>
                {
                    continue;
                }
                Ok(Key::Inode(inode)) => {
                    // The programs that had a file without a name open are gone.
                    let is_nameless = |row: &InodeRow| row.links == 0 && !row.is_folder();
                    if now
                        .as_deref()
                        .and_then(decode)
                        .is_some_and(|row| is_nameless(&row))
                    {
                        now = None;
                    }
                    self.inode_base((inode, stray), there.as_ref(), &created)
                }
                Ok(Key::Entry { name, .. }) => {
                    if let Some(entry) = entry_of(now.as_deref())
                        && self.void.contains(&entry.inode)
                    {
                        let name = name.to_vec();
                        self.tell(ConflictKind::Attributes, entry.inode, &name);
                        continue;
                    }
                    self.entry_base(stray, there.as_ref())
                }
                // An unknown value differs from the present value.
                Ok(Key::Xattr { .. }) => match &stray.base {
                    Some(base) => base.clone(),
                    None => there.as_ref().map(|value| other(value)),
                },
                Ok(Key::Extents { .. }) => None,
                _ => continue,
            };
            if base != there {
                let base = base.clone();
                self.theirs.insert(key.clone(), Side { base, now: there });
            }
            if base != now {
                self.ours.insert(key.clone(), Side { base, now });
            }
        }
        Ok(())
    }

    /// The row of an inode below the changes, or a row that stands for a change by others.
    fn inode_base(
        &self,
        (inode, stray): (Inode, &Stray),
        there: Option<&Bytes>,
        created: &BTreeSet<Inode>,
    ) -> Option<Bytes> {
        let is_lost = self.strays.contents.get(&inode) == Some(&Coverage::Lost);
        match (&stray.base, there) {
            (Some(base), Some(there)) if !is_lost => {
                let is_doubtful = self.strays.is_set_back && base.as_ref() != Some(there);
                let base = base.as_ref();
                base.map(|base| {
                    if is_doubtful {
                        changed(base)
                    } else {
                        base.clone()
                    }
                })
            }
            (Some(base), _) => base.as_ref().map(|base| changed(base)),
            // With the attributes of the changes, so that the newest state's attributes count.
            (None, Some(there)) => {
                let now = stray.now.as_ref();
                let now = now.filter(|row| is_alive(decode(row).as_ref()));
                Some(changed(now.unwrap_or(there)))
            }
            (None, None) if created.contains(&inode) => None,
            (None, None) => stray.now.clone(),
        }
    }

    /// The entry of a name below the changes: the present entry, if the changes concern the same inode.
    fn entry_base(&self, stray: &Stray, there: Option<&Bytes>) -> Option<Bytes> {
        if let Some(base) = &stray.base {
            return base.clone();
        }
        let entry = entry_of(there.map(|row| &row[..]))?;
        let is_equal = stray.now.as_ref() == there;
        // The inode is removed, and the merge refuses that, or the inode has another name now. A removed name of several stays: the
        // name may be the last by now.
        let is_ended = || {
            let row = self.strays.rows.get(&inode_key(entry.inode)[..]);
            row.is_some_and(|row| row.now.is_none())
        };
        let is_given = || self.given().iter().any(|(_, of)| *of == entry.inode);
        let is_taken = stray.now.is_none() && (is_ended() || is_given());
        (is_equal || is_taken).then(|| there.cloned()).flatten()
    }

    /// Contents of files without a changed row: whether others have written is not known.
    fn put_unnamed_contents(&mut self) -> Result<(), Errno> {
        for inode in self.strays.contents.keys() {
            let key = inode_key(*inode);
            if self.strays.rows.contains_key(&key[..]) {
                continue;
            }
            if let Some(there) = self.tree.get(&key)? {
                let base = Some(changed(&there));
                let side = Side {
                    base,
                    now: Some(there),
                };
                self.theirs.insert(key.to_vec(), side.clone());
                self.ours.insert(key.to_vec(), side);
            }
        }
        Ok(())
    }

    /// Octets of others are no part of the changes' content.
    fn put_their_extents(&mut self) -> Result<(), Errno> {
        let inodes: Vec<Inode> = self
            .theirs
            .keys()
            .filter_map(|key| match Key::decode(key) {
                Ok(Key::Inode(inode)) => Some(inode),
                _ => None,
            })
            .collect();
        for inode in inodes {
            let side = self.theirs.get(&inode_key(inode)[..]);
            let facts = |row: &Option<Bytes>| {
                let row = row.as_deref().and_then(decode);
                row.map(|row| (row.size, row.generation))
            };
            if side.is_some_and(|side| facts(&side.base) == facts(&side.now)) {
                continue;
            }
            for key in self.tree.keys(&extents_prefix(inode))? {
                let now = self.tree.get(&key)?;
                self.theirs.insert(key, Side { base: None, now });
            }
        }
        Ok(())
    }

    /// Inodes with a new name whose old name others have taken away: the name of the others counts.
    fn find_renamed(&mut self) -> Result<(), Errno> {
        let mut wanted = BTreeMap::new();
        for (key, inode) in self.given() {
            let row = self.tree.get(&inode_key(inode))?;
            if self.ours.contains_key(&key)
                && is_alive(row.as_deref().and_then(decode).as_ref())
                && !names(self.tree.get(&key)?.as_deref(), inode)
            {
                wanted.insert(inode, key);
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        for (inode, there) in self.names_of(&wanted)? {
            let is_intact = there.iter().any(|(home, name)| {
                let side = self.ours.get(&entry_key(*home, name));
                side.is_some_and(|side| names(side.base.as_deref(), inode))
            });
            if let (false, Some(key), Some((home, name))) =
                (is_intact, wanted.get(&inode), there.first())
            {
                self.is_elsewhere(inode, key, &entry_key(*home, name))?;
            }
        }
        Ok(())
    }

    /// An inode has a name elsewhere that the changes do not know.
    fn is_elsewhere(&mut self, inode: Inode, given: &[u8], there: &[u8]) -> Result<(), Errno> {
        let row = inode_key(inode);
        let links = |row: Option<&[u8]>| row.and_then(decode).map_or(0, |row| row.links);
        let before = self.tree.get(&row)?;
        let is_folder = before
            .as_deref()
            .and_then(decode)
            .is_some_and(|row| row.is_folder());
        let now = self.strays.rows.get(&row[..]);
        let is_link = !is_folder
            && links(now.and_then(|stray| stray.now.as_deref())) > links(before.as_deref());
        let left = self.left_name(inode);
        if is_link && left.is_none_or(|(_, is_known)| !is_known) {
            return Ok(());
        }
        match self.left_name(inode) {
            Some((left, _)) => {
                let entry = entry_of(self.strays.rows.get(given).and_then(|of| of.now.as_deref()));
                let base = entry.map(|entry| Bytes::from(encode_entry(entry)));
                let now = self.tree.get(&left)?;
                let side = |now| Side {
                    base: base.clone(),
                    now,
                };
                self.ours.insert(left.clone(), side(None));
                self.theirs.insert(left, side(now));
                let now = self.tree.get(there)?;
                self.theirs.insert(there.to_vec(), Side { base: None, now });
            }
            None => {
                self.ours.remove(given);
                if let Ok(Key::Entry { name, .. }) = Key::decode(given) {
                    let name = name.to_vec();
                    self.tell(ConflictKind::Renamed, inode, &name);
                }
            }
        }
        Ok(())
    }

    /// A name that the changes take away and others have taken too: a name of the inode, or of an unknown inode.
    fn left_name(&self, inode: Inode) -> Option<(Vec<u8>, bool)> {
        let rows = || {
            let rows = self.strays.rows.iter();
            rows.filter(|(key, of)| {
                of.now.is_none() && matches!(Key::decode(key), Ok(Key::Entry { .. }))
            })
        };
        let known = rows().find(|(_, of)| {
            let base = of.base.as_ref().and_then(Option::as_deref);
            names(base, inode)
        });
        let unknown =
            || rows().find(|(key, of)| of.base.is_none() && !self.theirs.contains_key(*key));
        known
            .map(|(key, _)| (key.clone(), true))
            .or_else(|| unknown().map(|(key, _)| (key.clone(), false)))
    }

    /// The names of inodes in the newest state, by one walk over all names.
    fn names_of(&self, wanted: &BTreeMap<Inode, Vec<u8>>) -> Result<Names, Errno> {
        let mut found = Names::new();
        let files = crate::rows::entries_prefix(0);
        let files = files.get(..1).unwrap_or_default();
        self.tree.visit(files, None, &mut |key, value| {
            if let Ok(Key::Entry { home, name }) = Key::decode(key)
                && let Some(entry) = entry_of(Some(value))
                && wanted.contains_key(&entry.inode)
            {
                let names = found.entry(entry.inode).or_default();
                names.push((home, name.to_vec()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

/// A row of an inode whose content others have changed.
fn changed(row: &[u8]) -> Bytes {
    match decode(row) {
        Some(mut row) => {
            row.generation = u64::MAX;
            row.encode().into()
        }
        None => other(row),
    }
}

/// Another value.
fn other(value: &[u8]) -> Bytes {
    [value, &[0]].concat().into()
}

fn decode(row: &[u8]) -> Option<InodeRow> {
    InodeRow::decode(row).ok()
}

/// Whether an inode is there and has a name.
fn is_alive(row: Option<&InodeRow>) -> bool {
    row.is_some_and(|row| row.links > 0)
}

fn entry_of(row: Option<&[u8]>) -> Option<EntryRow> {
    row.and_then(|row| decode_entry(row).ok())
}

fn names(row: Option<&[u8]>, inode: Inode) -> bool {
    entry_of(row).is_some_and(|entry| entry.inode == inode)
}
