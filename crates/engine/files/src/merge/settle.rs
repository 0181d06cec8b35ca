//! The end of a merge of changes whose base is gone: names of incomplete files, the folder of recovered files,
//! and attributes that are void.

use std::collections::BTreeSet;

use vere_ports::files::{Errno, FileKind, Inode};

use super::inodes::names;
use super::strays::Coverage;
use super::{ConflictKind, Fate, Label, Merge, decode};
use crate::rows::{EntryRow, Home, InodeRow, Key, ROOT_HOME, home_of, inode_key};

/// The name of the folder of recovered files; the label follows.
const RECOVERED: &[u8] = b"recovered files";
/// In names of files that have the changed ranges, and zeros elsewhere.
const PARTS: &str = "changed ranges only";
/// Permissions of the folder.
const RECOVERED_MODE: u16 = 0o755;

impl Merge<'_> {
    /// Names, and notes for people.
    pub(super) fn settle_strays(&mut self) -> Result<(), Errno> {
        let Some(strays) = self.strays else {
            return Ok(());
        };
        let mut parts = Vec::new();
        for (inode, coverage) in &strays.contents {
            if *coverage == Coverage::Whole {
                continue;
            }
            let moved = self.out.moves.iter().find(|(from, _)| from == inode);
            let was_there = self.tree.in_chain(&inode_key(*inode))?.is_some();
            match moved {
                Some((_, Some(to))) => parts.push(*to),
                None if !was_there && self.inode(*inode)?.is_some() => parts.push(*inode),
                _ => {}
            }
        }
        for inode in parts {
            self.name_parts(inode)?;
        }
        self.tell_attributes()
    }

    /// The names of a file say that the file has changed ranges only.
    fn name_parts(&mut self, inode: Inode) -> Result<(), Errno> {
        let local = self.tree.local_keys().map(<[u8]>::to_vec);
        let mut told = Vec::new();
        for key in local.collect::<Vec<_>>() {
            let Ok(Key::Entry { home, name }) = Key::decode(&key) else {
                continue;
            };
            if !names(self.tree.get(&key)?.as_deref(), inode) {
                continue;
            }
            self.tree.remove(&key)?;
            let of = (inode, FileKind::File);
            told = self.put_labelled(&Label::plain(PARTS), home, name, of)?;
        }
        self.conflict(ConflictKind::Parts, inode, &told);
        Ok(())
    }

    /// Changed attributes that did not stand.
    fn tell_attributes(&mut self) -> Result<(), Errno> {
        let mut void = Vec::new();
        let copies = self.out.moves.iter().filter(|(_, to)| to.is_some());
        let copied: BTreeSet<Inode> = copies.map(|(from, _)| *from).collect();
        for (key, side) in self.ours {
            match Key::decode(key) {
                Ok(Key::Inode(inode)) => {
                    let (now, ours) = (self.inode(inode)?, side.now.as_deref().and_then(decode));
                    let facts = |row: &InodeRow| (row.mode, row.uid, row.gid);
                    let stray = self.strays.and_then(|strays| strays.rows.get(key));
                    let base = stray.and_then(|stray| stray.base.clone()).flatten();
                    let base = base.as_deref().and_then(decode);
                    if let (Some(now), Some(ours)) = (now, ours)
                        && facts(&now) != facts(&ours)
                        && base.as_ref().map(facts) != Some(facts(&ours))
                        && !copied.contains(&inode)
                    {
                        void.push(inode);
                    }
                }
                Ok(Key::Xattr { inode, .. })
                    if self.inode(inode)?.is_some() && self.tree.get(key)? != side.now =>
                {
                    void.push(inode);
                }
                _ => {}
            }
        }
        void.dedup();
        for inode in void {
            self.conflict(ConflictKind::Attributes, inode, &[]);
        }
        Ok(())
    }

    /// Where an inode goes whose name nobody knows.
    pub(super) fn place_for_nameless(
        &mut self,
        inode: Inode,
        kind: FileKind,
    ) -> Result<(Home, Vec<u8>), Errno> {
        let number = inode.0.to_string();
        if self.strays.is_none() {
            return Ok((ROOT_HOME, number.into_bytes()));
        }
        let kind = match kind {
            FileKind::Folder => "folder",
            _ => "file",
        };
        let name = format!("{kind} {number}").into_bytes();
        Ok((self.recovered()?, name))
    }

    /// The home of the folder of recovered files. The first of these files makes the folder.
    fn recovered(&mut self) -> Result<Home, Errno> {
        if let Some(home) = self.recovered {
            return Ok(home);
        }
        let inode = (self.new_inode)().ok_or(Errno::NoSpc)?;
        // The home of the copies: no other folder has the home.
        let home = home_of(inode);
        let mut row = self.inode(Inode::ROOT)?.ok_or(Errno::Io)?;
        row.mode = RECOVERED_MODE;
        row.links = 2;
        row.size = 0;
        row.home_or_device = home;
        row.parent = Inode::ROOT.0;
        row.generation = 0;
        self.put_inode(inode, &row)?;
        self.folders.insert(home, inode);
        self.fates.insert(inode, Fate::Kept);
        self.recovered = Some(home);
        let kind = FileKind::Folder;
        let name = self.put_beside(ROOT_HOME, RECOVERED, (inode, kind))?;
        self.conflict(ConflictKind::Recovered, inode, &name);
        Ok(home)
    }

    /// Gives an inode a name with a label.
    pub(super) fn put_labelled(
        &mut self,
        label: &Label,
        home: Home,
        name: &[u8],
        (inode, kind): (Inode, FileKind),
    ) -> Result<Vec<u8>, Errno> {
        for number in 1..super::entries::NAMES_MAX {
            let made = label.of(name, number);
            let key = crate::rows::entry_key(home, &made);
            // The loser may give the very name too.
            if !self.tree.contains(&key)? && !self.ours.contains_key(&key) {
                self.put_entry(home, &made, EntryRow { inode, kind })?;
                return Ok(made);
            }
        }
        Err(Errno::Exist)
    }
}
