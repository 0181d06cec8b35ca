//! Names: look-ups, new inodes, links, and their removal.

use vere_ports::files::{Attributes, Caller, Errno, FileKind, FileTime, Inode};

use super::state::Files;
use crate::rows::{
    EntryRow, Home, InodeRow, NAME_OCTETS_MAX, ROOT_HOME, SLOT_MAX, SYMLINK_OCTETS_MAX,
    decode_entry, encode_entry, entries_prefix, entry_key, inode_key, inode_of,
};

/// Links of an inode, as XFS has it.
pub const LINKS_MAX: u32 = i32::MAX.cast_unsigned();
/// Folders whose homes for new inodes are known; the homes of all folders are given up beyond, and new ones are taken.
const HOMES_MAX: usize = 65_536;
/// The set-group-id bit.
const SET_GROUP_ID: u16 = 0o2000;
/// Permissions of a symbolic link.
const SYMLINK_MODE: u16 = 0o777;

/// A new inode, but for facts that the folder and the caller decide.
pub(super) struct New {
    pub(super) kind: FileKind,
    pub(super) mode: u16,
    pub(super) device: u32,
    pub(super) target: Vec<u8>,
}

/// The row of a new volume's root folder.
#[must_use]
pub fn root_folder(caller: Caller, mode: u16, now: FileTime) -> (Vec<u8>, Vec<u8>) {
    let new = New {
        kind: FileKind::Folder,
        mode,
        device: 0,
        target: Vec::new(),
    };
    let row = InodeRow {
        home_or_device: ROOT_HOME,
        parent: Inode::ROOT.0,
        ..new.row(caller, now)
    };
    (inode_key(Inode::ROOT).to_vec(), row.encode())
}

impl New {
    fn row(self, caller: Caller, now: FileTime) -> InodeRow {
        InodeRow {
            kind: self.kind,
            mode: self.mode & 0o7777,
            links: if self.kind == FileKind::Folder { 2 } else { 1 },
            uid: caller.uid,
            gid: caller.gid,
            size: self.target.len() as u64,
            home_or_device: u64::from(self.device),
            parent: 0,
            generation: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            target: self.target,
        }
    }
}

/// Refuses names that no entry has.
pub(super) fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > NAME_OCTETS_MAX {
        return Err(Errno::NameTooLong);
    }
    if name.is_empty() || name.iter().any(|octet| matches!(octet, 0 | b'/')) {
        return Err(Errno::Inval);
    }
    Ok(())
}

/// Whether the name is one that every folder has.
pub(super) fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

impl Files {
    /// The entry of a name; absent if absent.
    pub(super) fn entry(&mut self, home: Home, name: &[u8]) -> Result<Option<EntryRow>, Errno> {
        let key = entry_key(home, name);
        let Some(value) = self.tree.get(&key)? else {
            return Ok(None);
        };
        match decode_entry(&value) {
            Ok(entry) => Ok(Some(entry)),
            Err(error) => Err(self.damaged(&key, error.to_string())),
        }
    }

    pub(super) fn lookup(&mut self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        check_name(name)?;
        let folder = self.folder(parent)?;
        let inode = match name {
            b"." => parent,
            b".." => Inode(folder.parent),
            _ if folder.links == 0 => return Err(Errno::NoEnt),
            _ => {
                let entry = self.entry(folder.home_or_device, name)?;
                entry.ok_or(Errno::NoEnt)?.inode
            }
        };
        let row = self.named_row(inode)?;
        let attributes = self.attributes(inode, &row)?;
        self.looked_up(inode, &row);
        Ok(attributes)
    }

    /// The row of an inode that has a name: the row's absence is damage.
    pub(super) fn named_row(&mut self, inode: Inode) -> Result<InodeRow, Errno> {
        let row = self.row(inode);
        if row == Err(Errno::Stale) {
            let what = "expected the inode of a name; found no row".to_owned();
            return Err(self.damaged(&inode_key(inode), what));
        }
        row
    }

    /// A folder that takes a new entry of this name.
    pub(super) fn folder_without(&mut self, parent: Inode, name: &[u8]) -> Result<InodeRow, Errno> {
        check_name(name)?;
        let folder = self.folder(parent)?;
        if folder.links == 0 {
            return Err(Errno::NoEnt);
        }
        if is_dots(name)
            || self
                .tree
                .contains(&entry_key(folder.home_or_device, name))?
        {
            return Err(Errno::Exist);
        }
        Ok(folder)
    }

    /// Makes an inode with a name.
    pub(super) fn make(
        &mut self,
        caller: Caller,
        (parent, name): (Inode, &[u8]),
        new: New,
        now: FileTime,
    ) -> Result<Attributes, Errno> {
        let mut folder = self.folder_without(parent, name)?;
        let mut row = new.row(caller, now);
        if folder.mode & SET_GROUP_ID != 0 {
            row.gid = folder.gid;
            if row.is_folder() {
                row.mode |= SET_GROUP_ID;
            }
        }
        if row.is_folder() && folder.links >= LINKS_MAX {
            return Err(Errno::MLink);
        }
        let inode = self.new_inode(parent)?;
        if row.is_folder() {
            row.home_or_device = self.numbers.take().ok_or(Errno::NoSpc)?;
            row.parent = parent.0;
            folder.links = folder.links.saturating_add(1);
            self.remember_home(inode, row.home_or_device, 0);
        }
        self.put_row(inode, &row)?;
        self.put_entry(folder.home_or_device, name, (inode, row.kind))?;
        self.folder_changed(parent, folder, now)?;
        let attributes = self.attributes(inode, &row)?;
        self.looked_up(inode, &row);
        Ok(attributes)
    }

    pub(super) fn put_entry(
        &mut self,
        home: Home,
        name: &[u8],
        (inode, kind): (Inode, FileKind),
    ) -> Result<(), Errno> {
        let value = encode_entry(EntryRow { inode, kind });
        self.tree.put(&entry_key(home, name), value)
    }

    /// Writes the row of a folder whose entries have changed.
    pub(super) fn folder_changed(
        &mut self,
        inode: Inode,
        mut folder: InodeRow,
        now: FileTime,
    ) -> Result<(), Errno> {
        folder.mtime = now;
        folder.ctime = now;
        self.put_row(inode, &folder)
    }

    /// A number for an inode in a folder.
    fn new_inode(&mut self, folder: Inode) -> Result<Inode, Errno> {
        let (home, last) = match self.homes.get(&folder) {
            Some((home, last)) if *last < SLOT_MAX => (*home, *last),
            _ => (self.numbers.take().ok_or(Errno::NoSpc)?, 0),
        };
        let slot = last.saturating_add(1);
        self.remember_home(folder, home, slot);
        Ok(inode_of(home, slot))
    }

    fn remember_home(&mut self, folder: Inode, home: Home, last: u32) {
        if self.homes.len() >= HOMES_MAX && !self.homes.contains_key(&folder) {
            self.homes.clear();
        }
        self.homes.insert(folder, (home, last));
    }

    pub(super) fn symlink(
        &mut self,
        caller: Caller,
        place: (Inode, &[u8]),
        target: Vec<u8>,
        now: FileTime,
    ) -> Result<Attributes, Errno> {
        if target.is_empty() {
            return Err(Errno::NoEnt);
        }
        if target.len() > SYMLINK_OCTETS_MAX {
            return Err(Errno::NameTooLong);
        }
        let new = New {
            kind: FileKind::Symlink,
            mode: SYMLINK_MODE,
            device: 0,
            target,
        };
        self.make(caller, place, new, now)
    }

    pub(super) fn link(
        &mut self,
        inode: Inode,
        (parent, name): (Inode, &[u8]),
        now: FileTime,
    ) -> Result<Attributes, Errno> {
        let folder = self.folder_without(parent, name)?;
        let mut row = self.row(inode)?;
        if row.is_folder() {
            return Err(Errno::Perm);
        }
        if row.links == 0 {
            return Err(Errno::NoEnt);
        }
        if row.links >= LINKS_MAX {
            return Err(Errno::MLink);
        }
        row.links = row.links.saturating_add(1);
        row.ctime = now;
        self.put_row(inode, &row)?;
        self.put_entry(folder.home_or_device, name, (inode, row.kind))?;
        self.folder_changed(parent, folder, now)?;
        let attributes = self.attributes(inode, &row)?;
        self.looked_up(inode, &row);
        Ok(attributes)
    }

    pub(super) fn unlink(
        &mut self,
        parent: Inode,
        name: &[u8],
        now: FileTime,
    ) -> Result<(), Errno> {
        check_name(name)?;
        let folder = self.folder(parent)?;
        if is_dots(name) {
            return Err(Errno::IsDir);
        }
        let entry = self.entry(folder.home_or_device, name)?;
        let inode = entry.ok_or(Errno::NoEnt)?.inode;
        // A name whose inode is gone can be removed all the same.
        let row = match self.row(inode) {
            Err(Errno::Stale) => None,
            row => Some(row?),
        };
        if row.as_ref().is_some_and(InodeRow::is_folder) {
            return Err(Errno::IsDir);
        }
        self.tree.remove(&entry_key(folder.home_or_device, name))?;
        self.folder_changed(parent, folder, now)?;
        row.map_or(Ok(()), |row| self.unlinked(inode, row, now))
    }

    /// A name of an inode is gone.
    pub(super) fn unlinked(
        &mut self,
        inode: Inode,
        mut row: InodeRow,
        now: FileTime,
    ) -> Result<(), Errno> {
        row.ctime = now;
        row.links = if row.is_folder() {
            0
        } else {
            row.links.saturating_sub(1)
        };
        if row.links == 0 {
            self.nameless(inode, &row)
        } else {
            self.put_row(inode, &row)
        }
    }

    pub(super) fn remove_folder(
        &mut self,
        parent: Inode,
        name: &[u8],
        now: FileTime,
    ) -> Result<(), Errno> {
        check_name(name)?;
        let mut folder = self.folder(parent)?;
        match name {
            b"." => return Err(Errno::Inval),
            b".." => return Err(Errno::NotEmpty),
            _ => {}
        }
        let entry = self.entry(folder.home_or_device, name)?;
        let inode = entry.ok_or(Errno::NoEnt)?.inode;
        let row = self.folder(inode)?;
        self.check_empty(&row)?;
        self.tree.remove(&entry_key(folder.home_or_device, name))?;
        folder.links = folder.links.saturating_sub(1);
        self.folder_changed(parent, folder, now)?;
        self.unlinked(inode, row, now)
    }

    pub(super) fn check_empty(&self, folder: &InodeRow) -> Result<(), Errno> {
        if self.tree.any(&entries_prefix(folder.home_or_device))? {
            return Err(Errno::NotEmpty);
        }
        Ok(())
    }
}
