//! Reading ahead of a call: every row that a call may read is read before the call begins, so that a page which is missing is
//! fetched while nothing has changed yet.
//!
//! The functions follow the operations. A row too many costs a look into memory; a row too few is found by the tests, which
//! let the operations read nothing else.

use std::ops::ControlFlow;

use vere_ports::files::{Call, FileKind, Handle, Inode, RenameMode};

use super::rename::DEPTH_MAX;
use super::state::{Files, Open};
use crate::content::Source;
use crate::rows::{
    Home, InodeRow, Key, entries_prefix, entry_key, extents_prefix, inode_key, unnamed_key,
    xattr_key, xattrs_prefix,
};

impl Files {
    /// Reads every row that a call may read. Returns whether all of their pages are there; else [`Tree::take_missing`] tells
    /// the pages, or the first of them.
    ///
    /// [`Tree::take_missing`]: crate::tree::Tree::take_missing
    pub fn touch(&mut self, call: &Call) -> bool {
        self.tree.take_missing();
        match call {
            Call::Read {
                handle,
                offset,
                size,
            } => self.touch_read(*handle, *offset, u64::from(*size)),
            Call::Write { handle, .. } => self.touch_handle(*handle, false),
            Call::Allocate { handle, .. } => self.touch_handle(*handle, true),
            Call::Seek { handle, .. } => self.touch_handle(*handle, false),
            Call::CopyRange { from, to, .. } => {
                self.touch_atimes();
                self.touch_handle(*from, false);
                self.touch_handle(*to, true);
            }
            Call::Release { handle } => self.touch_release(*handle),
            Call::GetAttributes { inode } => self.touch_attributes(*inode),
            Call::SetAttributes { inode, .. } => self.touch_file(*inode, true),
            Call::Open { inode, flags } if flags.truncate => self.touch_file(*inode, true),
            Call::Open { inode, .. } | Call::OpenFolder { inode } => {
                self.touch_row(*inode);
            }
            Call::ReadLink { inode } => {
                self.touch_atimes();
                self.touch_row(*inode);
            }
            Call::ReadFolder {
                handle,
                cursor,
                with_attributes,
            } => self.touch_listing(*handle, *cursor, *with_attributes),
            other => self.touch_names(other),
        }
        self.tree.has_all()
    }

    /// Reads the rows that a change of a stored content needs: inode, extents. The tree tells the missing pages.
    pub fn touch_stored(&mut self, inode: Inode) {
        self.touch_row(inode);
        self.touch_prefix(&extents_prefix(inode));
    }

    fn touch_names(&mut self, call: &Call) {
        match call {
            Call::Lookup { parent, name } => match (name.as_slice(), self.touch_row(*parent)) {
                (b".", _) => self.touch_attributes(*parent),
                (b"..", Some(folder)) => self.touch_attributes(Inode(folder.parent)),
                (_, Some(folder)) => {
                    if let Some(inode) = self.touch_entry(folder.home_or_device, name) {
                        self.touch_attributes(inode);
                    }
                }
                (_, None) => {}
            },
            Call::MakeNode { parent, name, .. }
            | Call::MakeFolder { parent, name, .. }
            | Call::Symlink { parent, name, .. }
            | Call::Create { parent, name, .. } => {
                self.touch_place(*parent, name);
            }
            Call::Link {
                inode,
                parent,
                name,
            } => {
                self.touch_place(*parent, name);
                self.touch_attributes(*inode);
            }
            Call::Unlink { parent, name } | Call::RemoveFolder { parent, name } => {
                if let Some(inode) = self.touch_place(*parent, name) {
                    self.touch_end(inode);
                }
            }
            Call::Rename {
                parent,
                name,
                new_parent,
                new_name,
                mode,
            } => self.touch_rename((*parent, name), (*new_parent, new_name), *mode),
            Call::SetXattr { inode, name, .. } | Call::RemoveXattr { inode, name } => {
                self.touch_row(*inode);
                let _ = self.tree.get(&xattr_key(*inode, name));
                self.touch_prefix(&xattrs_prefix(*inode));
            }
            Call::GetXattr { inode, name } => {
                self.touch_row(*inode);
                let _ = self.tree.get(&xattr_key(*inode, name));
            }
            Call::ListXattrs { inode } => {
                self.touch_row(*inode);
                self.touch_prefix(&xattrs_prefix(*inode));
            }
            _ => {}
        }
    }

    /// The row of an inode; absent if the row is absent, wrong, or in a page that is missing.
    fn touch_row(&mut self, inode: Inode) -> Option<InodeRow> {
        if self.ghosts.contains_key(&inode) {
            return self.row(inode).ok();
        }
        let row = self.tree.get(&inode_key(inode)).ok()??;
        InodeRow::decode(&row).ok()
    }

    fn touch_prefix(&self, prefix: &[u8]) {
        let _ = self
            .tree
            .visit(prefix, None, &mut |_, _| Ok(ControlFlow::Continue(())));
    }

    fn touch_entry(&mut self, home: Home, name: &[u8]) -> Option<Inode> {
        self.entry(home, name).ok()?.map(|entry| entry.inode)
    }

    /// The inode of a name in a folder.
    fn touch_place(&mut self, parent: Inode, name: &[u8]) -> Option<Inode> {
        let folder = self.touch_row(parent)?;
        self.touch_entry(folder.home_or_device, name)
    }

    fn touch_attributes(&mut self, inode: Inode) {
        let row = self.touch_row(inode);
        let is_stored = |row: &InodeRow| row.kind == FileKind::File && row.size > 0;
        if row.as_ref().is_some_and(is_stored) && !self.contents.contains_key(&inode) {
            self.touch_prefix(&extents_prefix(inode));
        }
    }

    /// A file whose content is read, or becomes rows at once if `is_saved`.
    fn touch_file(&mut self, inode: Inode, is_saved: bool) {
        self.touch_row(inode);
        let _ = self
            .tree
            .get(&xattr_key(inode, super::attributes::CAPABILITY));
        if is_saved || !self.contents.contains_key(&inode) {
            self.touch_prefix(&extents_prefix(inode));
        }
    }

    fn touch_handle(&mut self, handle: Handle, is_saved: bool) {
        if let Some(inode) = self.inode_of(handle) {
            self.touch_file(inode, is_saved);
        }
    }

    /// A read needs the rows of the packs that have the octets, too.
    fn touch_read(&mut self, handle: Handle, offset: u64, size: u64) {
        self.touch_atimes();
        let Some(inode) = self.inode_of(handle) else {
            return;
        };
        self.touch_file(inode, false);
        let row = self.touch_row(inode);
        if !self.tree.has_all() {
            return;
        }
        if let Some(row) = row
            && self.load(inode, row.size).is_ok()
        {
            self.touch_packs(inode, offset, size);
        }
    }

    /// Reads the rows of packs that have octets of a loaded file. The tree tells the missing pages.
    pub fn touch_packs(&self, inode: Inode, offset: u64, length: u64) {
        let Some(content) = self.contents.get(&inode) else {
            return;
        };
        let mut last = None;
        for (_, piece) in content.pieces_in(offset, offset.saturating_add(length)) {
            if let Source::Chunk { extent, .. } = piece.source
                && last.replace(extent.pack) != Some(extent.pack)
            {
                let _ = self.tree.get(&Key::Pack(extent.pack.0).encode());
            }
        }
    }

    /// The last close of a file without a name ends the file.
    fn touch_release(&mut self, handle: Handle) {
        if let Some(inode) = self.inode_of(handle)
            && let Some(row) = self.touch_row(inode)
            && row.links == 0
        {
            self.touch_end(inode);
        }
    }

    /// An inode loses a name, perhaps the last one.
    fn touch_end(&mut self, inode: Inode) {
        let Some(row) = self.touch_row(inode) else {
            return;
        };
        if row.is_folder() {
            self.touch_any(&entries_prefix(row.home_or_device));
        }
        if row.is_folder() || row.links <= 1 {
            let _ = self.tree.get(&unnamed_key(self.numbers.writer(), inode));
            self.touch_prefix(&xattrs_prefix(inode));
            self.touch_prefix(&extents_prefix(inode));
        }
    }

    fn touch_any(&self, prefix: &[u8]) {
        let _ = self.tree.any(prefix);
    }

    fn touch_rename(
        &mut self,
        (parent, name): (Inode, &[u8]),
        (new_parent, new_name): (Inode, &[u8]),
        mode: RenameMode,
    ) {
        let from = self.touch_place(parent, name);
        let to = self.touch_place(new_parent, new_name);
        if let Some(from) = from
            && self.touch_row(from).is_some_and(|row| row.is_folder())
        {
            self.touch_way_up(new_parent);
        }
        let Some(to) = to else {
            return;
        };
        if self.touch_row(to).is_some_and(|row| row.is_folder()) {
            self.touch_way_up(parent);
        }
        if mode != RenameMode::Exchange {
            self.touch_end(to);
        }
    }

    /// The folders above a folder.
    fn touch_way_up(&mut self, folder: Inode) {
        let mut at = folder;
        for _ in 0..DEPTH_MAX {
            match self.touch_row(at) {
                Some(row) if at != Inode::ROOT && row.is_folder() => at = Inode(row.parent),
                _ => return,
            }
        }
    }

    fn touch_listing(&mut self, handle: Handle, cursor: u64, with_attributes: bool) {
        self.touch_atimes();
        let Some(Open::Folder { inode, names }) = self.handles.get(&handle) else {
            return;
        };
        let (inode, known) = (*inode, if cursor == 0 { 0 } else { names.len() });
        let Some(folder) = self.touch_row(inode) else {
            return;
        };
        let home = folder.home_or_device;
        let most = super::folders::entries_most(with_attributes);
        let first = super::folders::position(cursor);
        let mut left = most;
        let mut at = first;
        let name_at = |files: &Self, at: usize| match files.handles.get(&handle) {
            Some(Open::Folder { names, .. }) => names.get(at).cloned(),
            _ => None,
        };
        while left > 0
            && at < known
            && let Some(name) = name_at(self, at)
        {
            at = at.saturating_add(1);
            if let Some(inode) = self.touch_entry(home, &name) {
                left = left.saturating_sub(self.touch_listed(inode, with_attributes));
            }
        }
        let last = known.checked_sub(1).and_then(|last| name_at(self, last));
        let behind = last.map(|name| entry_key(home, &name));
        self.touch_entries(home, behind, (most, left), with_attributes);
    }

    /// The entries behind a key. Names whose inodes cannot be read do not count: the listing passes them over.
    fn touch_entries(
        &mut self,
        home: Home,
        behind: Option<Vec<u8>>,
        (most, left): (usize, usize),
        with_attributes: bool,
    ) {
        let (mut behind, mut left) = (behind, left);
        while left > 0 {
            let mut inodes = Vec::new();
            let mut last = None;
            let _ = self.tree.visit(
                &entries_prefix(home),
                behind.as_deref(),
                &mut |key, value| {
                    last = Some(key.to_vec());
                    if let Ok(entry) = crate::rows::decode_entry(value) {
                        inodes.push(entry.inode);
                    }
                    Ok(if inodes.len() < most {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    })
                },
            );
            for inode in inodes {
                left = left.saturating_sub(self.touch_listed(inode, with_attributes));
            }
            if last.is_none() || !self.tree.has_all() {
                return;
            }
            behind = last;
        }
    }

    /// Returns whether an entry of this inode is shown.
    fn touch_listed(&mut self, inode: Inode, with_attributes: bool) -> usize {
        if !with_attributes {
            return 1;
        }
        self.touch_attributes(inode);
        usize::from(self.touch_row(inode).is_some())
    }

    /// Times of access that become rows when there are too many.
    fn touch_atimes(&mut self) {
        for inode in self.atimes_due() {
            self.touch_row(inode);
        }
    }
}
