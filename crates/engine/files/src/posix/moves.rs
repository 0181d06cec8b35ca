//! Contents that change their inodes, because another mount has changed the same files.

use vere_ports::files::{Errno, FileKind, FileTime, Inode};

use std::collections::HashMap;

use super::numbers::Numbers;
use super::outcome::ContentChange;
use super::state::{Files, Open};
use crate::content::Piece;
use crate::rows::{Extent, Home, InodeRow, SLOT_MAX, inode_of};
use crate::tree::Tree;

impl Files {
    /// Whether a file has octets that no server has.
    #[must_use]
    pub fn is_dirty(&self, inode: Inode) -> bool {
        self.dirty.contains_key(&inode)
    }

    /// Files with octets that no server has.
    pub fn dirty_inodes(&self) -> impl Iterator<Item = Inode> + '_ {
        self.dirty.keys().copied()
    }

    /// Whether programs have the file open.
    #[must_use]
    pub fn is_open(&self, inode: Inode) -> bool {
        self.opens.contains_key(&inode)
    }

    /// The content of a file is read again from rows when wanted, unless octets of the content are unsent.
    pub fn reload(&mut self, inode: Inode) {
        if !self.dirty.contains_key(&inode) && !self.ghosts.contains_key(&inode) {
            self.contents.remove(&inode);
        }
    }

    /// Another mount has moved chunks. Returns the pieces of files with unsent octets that are other ones now.
    pub fn relocate(&mut self, places: &HashMap<Extent, Extent>) -> Vec<(Inode, u64, Piece)> {
        let mut all = Vec::new();
        for (inode, content) in &mut self.contents {
            let moved = content.relocate(places);
            if self.dirty.contains_key(inode) {
                all.extend(moved.into_iter().map(|(at, piece)| (*inode, at, piece)));
            }
        }
        all
    }

    /// The content of a file is dropped, unsent octets too.
    pub fn discard(&mut self, inode: Inode) {
        self.clean(inode);
        if self.ghosts.contains_key(&inode) {
            return;
        }
        if let Some(mut content) = self.contents.remove(&inode) {
            content.cut(0, u64::MAX, &mut self.unsent);
        }
    }

    /// The content of a file, and programs that have the file open, go on with another inode.
    pub fn move_content(&mut self, from: Inode, to: Inode) {
        if let Some(content) = self.contents.remove(&from) {
            self.contents.insert(to, content);
        }
        if let Some(dirty) = self.dirty.remove(&from) {
            self.dirty_order.insert(dirty.order, to);
            self.dirty.insert(to, dirty);
        }
        if let Some(opens) = self.opens.remove(&from) {
            self.opens.insert(to, opens);
        }
        for open in self.handles.values_mut() {
            if let Open::File { inode, .. } = open
                && *inode == from
            {
                *inode = to;
            }
        }
        self.atimes.remove(&from);
    }

    /// The row of a file that another mount removes while programs have the file open, with the content read into memory. To
    /// be called before the rows go; [`Files::keep`] follows.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn load_to_keep(&mut self, inode: Inode) -> Result<Option<InodeRow>, Errno> {
        let row = self.row(inode)?;
        if row.kind != FileKind::File {
            return Ok(None);
        }
        self.load(inode, row.size)?;
        Ok(Some(row))
    }

    /// A file that another mount has removed stays for the programs that have the file open.
    pub fn keep(&mut self, inode: Inode, row: InodeRow) {
        self.ghosts.insert(inode, row);
    }

    /// A file that another mount had removed is there again.
    pub fn lives_again(&mut self, inode: Inode) {
        if self.ghosts.remove(&inode).is_some() {
            self.reload(inode);
        }
    }

    /// The octets that the rows of a file's extents have, as a replay begins.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn begin_replay(&mut self, inode: Inode) -> Result<Option<u64>, Errno> {
        match self.row(inode) {
            Ok(row) => {
                self.load(inode, row.size)?;
                Ok(Some(row.size))
            }
            Err(Errno::Stale) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Changes of content from the journal, after the rows of all of them.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn replay_all(
        &mut self,
        changes: impl IntoIterator<Item = ContentChange>,
        since: FileTime,
    ) -> Result<(), Errno> {
        for change in changes {
            // Octets of a file that was removed later have no place.
            match self.replay(change, since) {
                Ok(()) | Err(Errno::Stale) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// The size that belongs to the rows of a file's extents.
    pub fn set_stored_size(&mut self, inode: Inode, size: u64) {
        if let Some(dirty) = self.dirty.get_mut(&inode) {
            dirty.stored_size = size;
        }
    }

    /// The rows and the homes of this writer.
    pub fn tree_and_numbers(&mut self) -> (&mut Tree, &mut Numbers) {
        (&mut self.tree, &mut self.numbers)
    }

    /// New inodes get homes of the writer's present number.
    pub fn forget_homes(&mut self) {
        self.homes.clear();
    }

    /// The folders that the kernel knows, and the root folder, by their homes.
    #[must_use]
    pub fn known_folders(&self) -> &HashMap<Home, Inode> {
        &self.folders
    }
}

/// The inode of a conflict copy: slots of a home of their own, in turn.
#[must_use]
pub fn inode_for_copy(numbers: &mut Numbers, last: &mut Option<Inode>) -> Option<Inode> {
    let inode = match *last {
        Some(Inode(number)) if number & u64::from(SLOT_MAX) < u64::from(SLOT_MAX) => {
            Inode(number.saturating_add(1))
        }
        _ => inode_of(numbers.take()?, 1),
    };
    *last = Some(inode);
    Some(inode)
}
