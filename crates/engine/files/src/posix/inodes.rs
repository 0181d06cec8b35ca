//! Inodes: their rows, attributes, look-ups, and their end.

use vere_ports::files::{Attributes, Errno, FileKind, FileTime, Inode};

use super::damage::Damage;
use super::state::Files;
use crate::content::{LoadError, allocated, load};
use crate::rows::{InodeRow, extents_key, extents_prefix, inode_key, unnamed_key, xattrs_prefix};

/// Times of access that wait for another change of their inodes.
const ATIMES_MAX: usize = 65_536;
/// Times of access that become rows when there are so many.
const ATIMES_SETTLED: usize = 64;
/// Wrong rows that wait to be reported; further ones are left out.
const DAMAGE_MAX: usize = 64;
/// The unit in which files occupy room.
const ALLOCATION: u64 = 4096;
/// The size of a folder, as ext4 has for small folders.
const FOLDER_SIZE: u64 = 4096;
/// Seconds after which a time of access is renewed although nothing has changed (relatime).
const ATIME_AGE_S: i64 = 24 * 60 * 60;

impl Files {
    /// The row of an inode.
    pub(super) fn row(&mut self, inode: Inode) -> Result<InodeRow, Errno> {
        if let Some(row) = self.ghosts.get(&inode) {
            return Ok(row.clone());
        }
        let key = inode_key(inode);
        let row = self.tree.get(&key)?.ok_or(Errno::Stale)?;
        let mut row = match InodeRow::decode(&row) {
            Ok(row) => row,
            Err(error) => return Err(self.damaged(&key, error.to_string())),
        };
        if let Some(atime) = self.atimes.get(&inode) {
            row.atime = *atime;
        }
        Ok(row)
    }

    /// The row of a folder.
    pub(super) fn folder(&mut self, inode: Inode) -> Result<InodeRow, Errno> {
        let row = self.row(inode)?;
        if row.is_folder() {
            Ok(row)
        } else {
            Err(Errno::NotDir)
        }
    }

    pub(super) fn put_row(&mut self, inode: Inode, row: &InodeRow) -> Result<(), Errno> {
        if let Some(ghost) = self.ghosts.get_mut(&inode) {
            ghost.clone_from(row);
            return Ok(());
        }
        self.tree.put(&inode_key(inode), row.encode())?;
        self.atimes.remove(&inode);
        Ok(())
    }

    /// Records a wrong row.
    pub(super) fn damaged(&mut self, key: &[u8], what: String) -> Errno {
        let known = self.damage.iter().any(|damage| damage.key == key);
        if !known && self.damage.len() < DAMAGE_MAX {
            let key = key.to_vec();
            self.damage.push(Damage { key, what });
        }
        Errno::Io
    }

    pub(super) fn unloadable(&mut self, inode: Inode, error: LoadError) -> Errno {
        match error {
            LoadError::Row { offset, error } => {
                self.damaged(&extents_key(inode, offset), error.to_string())
            }
            LoadError::Tree(errno) => errno,
        }
    }

    /// The facts of an inode.
    pub(super) fn attributes(&mut self, inode: Inode, row: &InodeRow) -> Result<Attributes, Errno> {
        let size = if row.is_folder() {
            FOLDER_SIZE
        } else {
            row.size
        };
        Ok(Attributes {
            inode,
            kind: row.kind,
            mode: row.mode,
            links: row.links,
            uid: row.uid,
            gid: row.gid,
            size,
            allocated: self.allocated(inode, row)?,
            device: row.device(),
            atime: row.atime,
            mtime: row.mtime,
            ctime: row.ctime,
            btime: row.btime,
        })
    }

    fn allocated(&mut self, inode: Inode, row: &InodeRow) -> Result<u64, Errno> {
        if row.kind != FileKind::File || row.size == 0 {
            return Ok(0);
        }
        let octets = match self.contents.get(&inode) {
            Some(content) => Ok(content.data_octets()),
            None => allocated(&self.tree, inode),
        };
        let octets = octets.map_err(|error| self.unloadable(inode, error))?;
        Ok(octets.div_ceil(ALLOCATION).saturating_mul(ALLOCATION))
    }

    /// Counts a look-up by the kernel.
    pub(super) fn looked_up(&mut self, inode: Inode, row: &InodeRow) {
        if inode == Inode::ROOT {
            return;
        }
        let home = row.is_folder().then_some(row.home_or_device);
        self.lookups.add(inode, home);
        self.folders.extend(home.map(|home| (home, inode)));
    }

    pub(super) fn forget(&mut self, inode: Inode, lookups: u64) {
        if self.lookups.remove(inode, lookups) {
            if let Some(home) = self.lookups.take_home(inode) {
                self.folders.remove(&home);
            }
            self.end_ghost(inode);
        }
    }

    /// Sets the time of access as relatime wants: if content or facts have changed since, or after a day.
    pub(super) fn accessed(
        &mut self,
        inode: Inode,
        row: &InodeRow,
        now: FileTime,
    ) -> Result<(), Errno> {
        let atime = row.atime;
        let old = now.seconds.saturating_sub(atime.seconds) >= ATIME_AGE_S;
        if !old && atime > row.mtime && atime > row.ctime {
            return Ok(());
        }
        if let Some(ghost) = self.ghosts.get_mut(&inode) {
            ghost.atime = now;
            return Ok(());
        }
        let due = self.atimes_due();
        self.atimes.insert(inode, now);
        due.into_iter()
            .try_for_each(|inode| self.settle_atime(inode))
    }

    /// Inodes whose times of access become rows with the next one.
    pub(super) fn atimes_due(&self) -> Vec<Inode> {
        if self.atimes.len() < ATIMES_MAX {
            return Vec::new();
        }
        self.atimes.keys().take(ATIMES_SETTLED).copied().collect()
    }

    fn settle_atime(&mut self, inode: Inode) -> Result<(), Errno> {
        match self.row(inode) {
            Ok(row) => self.put_row(inode, &row)?,
            Err(Errno::Stale | Errno::Io) => {}
            Err(errno) => return Err(errno),
        }
        self.atimes.remove(&inode);
        Ok(())
    }

    /// Puts times of access that wait for other changes into rows, as the end of a mount wants. A time whose row is in a
    /// missing page is given up: no end of a mount waits for an account because of a time of access.
    ///
    /// # Errors
    ///
    /// Failures to write rows.
    pub fn settle_atimes(&mut self) -> Result<(), Errno> {
        while let Some(inode) = self.atimes.keys().next().copied() {
            match self.settle_atime(inode) {
                Err(Errno::Again) => self.atimes.remove(&inode),
                other => {
                    other?;
                    None
                }
            };
        }
        self.tree.take_missing();
        Ok(())
    }

    /// Reads the content of a file into memory.
    pub(super) fn load(&mut self, inode: Inode, size: u64) -> Result<(), Errno> {
        if self.contents.contains_key(&inode) {
            return Ok(());
        }
        let content =
            load(&self.tree, inode, size).map_err(|error| self.unloadable(inode, error))?;
        self.contents.insert(inode, content);
        Ok(())
    }

    /// Lets go of a content that is stored and not open.
    pub(super) fn unload(&mut self, inode: Inode) {
        let open = self.opens.contains_key(&inode);
        if !open && !self.dirty.contains_key(&inode) && !self.ghosts.contains_key(&inode) {
            self.drop_content(inode);
        }
    }

    fn drop_content(&mut self, inode: Inode) {
        if let Some(mut content) = self.contents.remove(&inode) {
            content.cut(0, u64::MAX, &mut self.unsent);
        }
    }

    pub(super) fn clean(&mut self, inode: Inode) {
        if let Some(dirty) = self.dirty.remove(&inode) {
            self.dirty_order.remove(&dirty.order);
        }
    }

    /// The last name of an inode is gone: an open file keeps its rows until the last close.
    pub(super) fn nameless(&mut self, inode: Inode, row: &InodeRow) -> Result<(), Errno> {
        if row.kind == FileKind::File && self.opens.contains_key(&inode) {
            self.put_row(inode, row)?;
            let key = unnamed_key(self.numbers.writer(), inode);
            return self.tree.put(&key, Vec::new());
        }
        self.end(inode, row)
    }

    /// Removes the rows of an inode without names. What the kernel still knows stays in memory until the kernel forgets:
    /// facts, and the content of a file, since a path in `/proc` can open the file once more.
    fn end(&mut self, inode: Inode, row: &InodeRow) -> Result<(), Errno> {
        let known = self.lookups.has(inode) || self.opens.contains_key(&inode);
        if known {
            if row.kind == FileKind::File && row.size > 0 {
                self.load(inode, row.size)?;
            }
            self.ghosts.insert(inode, row.clone());
        } else {
            self.drop_content(inode);
        }
        self.clean(inode);
        self.atimes.remove(&inode);
        self.homes.remove(&inode);
        self.tree.remove(&inode_key(inode))?;
        for prefix in [xattrs_prefix(inode), extents_prefix(inode)] {
            for key in self.tree.keys(&prefix)? {
                self.tree.remove(&key)?;
            }
        }
        Ok(())
    }

    /// The last descriptor of a file is closed.
    pub(super) fn closed(&mut self, inode: Inode) -> Result<(), Errno> {
        if self.ghosts.contains_key(&inode) {
            self.end_ghost(inode);
            return Ok(());
        }
        match self.row(inode) {
            Ok(row) if row.links == 0 && row.kind == FileKind::File => {
                let key = unnamed_key(self.numbers.writer(), inode);
                self.tree.remove(&key)?;
                self.end(inode, &row)
            }
            Ok(_) | Err(Errno::Stale | Errno::Io) => {
                self.unload(inode);
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }

    fn end_ghost(&mut self, inode: Inode) {
        let known = self.lookups.has(inode) || self.opens.contains_key(&inode);
        if !known && self.ghosts.remove(&inode).is_some() {
            self.drop_content(inode);
        }
    }
}
