//! The way of contents to the servers, and back from the journal.

use bytes::Bytes;
use vere_ports::files::{Errno, FileTime, Handle, Inode};

use super::outcome::{ContentChange, DirtyFile, UnsentRange};
use super::state::Files;
use super::state::Open;
use crate::content::{Content, Piece, Source, Unsent, UnsentId, save};
use crate::rows::{Extent, InodeRow, Key, extents_prefix, unnamed_prefix};
use crate::tree::Change;

impl Files {
    /// Files with unsent octets, the oldest change first.
    pub fn dirty(&self) -> impl Iterator<Item = DirtyFile> + '_ {
        self.dirty_order.values().filter_map(|inode| {
            let content = self.contents.get(inode)?;
            Some(DirtyFile {
                inode: *inode,
                octets: content.unsent_octets(),
                since: self.dirty.get(inode)?.since,
            })
        })
    }

    /// Octets of a file that no server has.
    #[must_use]
    pub fn unsent_octets_of(&self, inode: Inode) -> u64 {
        let dirty = self.dirty.contains_key(&inode);
        let content = self.contents.get(&inode).filter(|_| dirty);
        content.map_or(0, |content| content.unsent_octets())
    }

    /// The unsent ranges of a file, in order.
    #[must_use]
    pub fn unsent_of(&self, inode: Inode) -> Vec<UnsentRange> {
        let content = self.contents.get(&inode);
        let content = content.filter(|_| self.dirty.contains_key(&inode));
        let runs = content.map_or_else(Vec::new, |content| content.unsent_runs());
        let range = |(offset, pieces): (u64, Vec<Piece>)| {
            let length = pieces.iter().map(|piece| u64::from(piece.length)).sum();
            UnsentRange {
                offset,
                length,
                pieces,
            }
        };
        runs.into_iter().map(range).collect()
    }

    /// A chunk that was cut from the pieces `sent` at `offset` is on a server. Octets that have changed since stay unsent. Rows
    /// change when no octet of the file is unsent any more.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows; EIO for a wrong row.
    pub fn stored(
        &mut self,
        inode: Inode,
        offset: u64,
        sent: &[Piece],
        extent: Extent,
    ) -> Result<(), Errno> {
        if !self.dirty.contains_key(&inode) {
            return Ok(());
        }
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        content.stored(offset, sent, extent, &mut self.unsent);
        self.after_storing(inode)
    }

    /// Ranges of a file lie in chunks on servers, because another file has sent the same octets.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows; EIO for a wrong row.
    pub fn place_copies(&mut self, inode: Inode, chunks: &[(u64, Piece)]) -> Result<(), Errno> {
        if chunks.is_empty() || !self.dirty.contains_key(&inode) {
            return Ok(());
        }
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        for (offset, piece) in chunks {
            content.put(*offset, *piece, &mut self.unsent);
        }
        self.after_storing(inode)
    }

    /// Has rows tell the content if no octet is unsent any more.
    fn after_storing(&mut self, inode: Inode) -> Result<(), Errno> {
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        if content.unsent_octets() > 0 {
            return Ok(());
        }
        let mut row = self.row(inode)?;
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        save(content, &mut self.tree, inode)?;
        self.clean(inode);
        row.generation = row.generation.saturating_add(1);
        self.put_row(inode, &row)?;
        self.unload(inode);
        Ok(())
    }

    /// The row of an inode as the servers may have the row while octets are unsent: the size of the stored content, and all
    /// else as it is. Absent for an inode without a row.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn sent_inode_row(&mut self, inode: Inode) -> Result<Option<InodeRow>, Errno> {
        if self.ghosts.contains_key(&inode) {
            return Ok(None);
        }
        let mut row = match self.row(inode) {
            Ok(row) => row,
            Err(Errno::Stale) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        if let Some(dirty) = self.dirty.get(&inode) {
            row.size = dirty.stored_size;
        }
        Ok(Some(row))
    }

    /// A change of content from the journal. Rows stay: the journal has their changes too, and the changes of content come
    /// first.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn replay(&mut self, change: ContentChange, since: FileTime) -> Result<(), Errno> {
        match change {
            ContentChange::Write {
                inode,
                offset,
                id,
                skip,
                data,
            } => self.replay_write(inode, offset, (id, skip), &data, since),
            ContentChange::Cut { inode, from, to } => {
                let size = self.loaded(inode)?;
                let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
                content.cut(from, to, &mut self.unsent);
                self.replayed(inode, size, since);
                Ok(())
            }
            ContentChange::Chunk {
                inode,
                offset,
                length,
                extent,
                skip,
            } => {
                let size = self.loaded(inode)?;
                let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
                let source = Source::Chunk { extent, skip };
                content.put(offset, Piece { length, source }, &mut self.unsent);
                self.replayed(inode, size, since);
                Ok(())
            }
        }
    }

    /// The content of a file as of an earlier moment is on servers, while newer octets are unsent: rows have the earlier one.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows.
    pub fn store_snapshot(
        &mut self,
        inode: Inode,
        pieces: &[(u64, Piece)],
        size: u64,
    ) -> Result<(), Errno> {
        let mut content = Content::new();
        // Every piece lies in a chunk, so that the store stays empty.
        let mut none = Unsent::default();
        for (offset, piece) in pieces {
            content.put(*offset, *piece, &mut none);
        }
        // The row of the inode tells other mounts that the content is another one.
        let row = match self.row(inode) {
            Err(Errno::Stale) => None,
            row => Some(row?),
        };
        if save(&content, &mut self.tree, inode)?
            && let Some(mut row) = row
        {
            row.generation = row.generation.saturating_add(1);
            self.put_row(inode, &row)?;
        }
        if let Some(dirty) = self.dirty.get_mut(&inode) {
            dirty.stored_size = size;
        }
        Ok(())
    }

    /// The pieces of a content in memory.
    #[must_use]
    pub fn pieces(&self, inode: Inode) -> Vec<(u64, Piece)> {
        let content = self.contents.get(&inode);
        content.map_or_else(Vec::new, |content| content.pieces().collect())
    }

    /// The packs of all chunks of files with unsent octets: no row may name them yet.
    pub fn packs_of_dirty(&self) -> impl Iterator<Item = u64> + '_ {
        let dirty = self
            .dirty
            .keys()
            .filter_map(|inode| self.contents.get(inode));
        let pieces = dirty.flat_map(Content::pieces);
        pieces.filter_map(|(_, piece)| match piece.source {
            Source::Chunk { extent, .. } => Some(extent.pack.0),
            _ => None,
        })
    }

    /// The size that programs see.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn size(&mut self, inode: Inode) -> Result<u64, Errno> {
        Ok(self.row(inode)?.size)
    }

    /// The inode of an entry.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn inode_at(&mut self, parent: Inode, name: &[u8]) -> Result<Option<Inode>, Errno> {
        let folder = self.folder(parent)?;
        let entry = self.entry(folder.home_or_device, name)?;
        Ok(entry.map(|entry| entry.inode))
    }

    /// The file of a handle.
    #[must_use]
    pub fn inode_of(&self, handle: Handle) -> Option<Inode> {
        match self.handles.get(&handle)? {
            Open::File { inode, .. } => Some(*inode),
            Open::Folder { .. } => None,
        }
    }

    /// The last change of the journal is replayed: contents that are wholly on servers go into rows.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows.
    pub fn end_replay(&mut self) -> Result<(), Errno> {
        let loaded: Vec<Inode> = self.contents.keys().copied().collect();
        for inode in loaded {
            if !self.dirty.contains_key(&inode) {
                let content = self.contents.get(&inode).ok_or(Errno::Io)?;
                save(content, &mut self.tree, inode)?;
                self.unload(inode);
            }
        }
        Ok(())
    }

    fn replay_write(
        &mut self,
        inode: Inode,
        offset: u64,
        buffer: (UnsentId, u32),
        data: &Bytes,
        since: FileTime,
    ) -> Result<(), Errno> {
        let size = self.loaded(inode)?;
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        content.rewrite(offset, buffer, data, &mut self.unsent);
        self.replayed(inode, size, since);
        Ok(())
    }

    /// Reads a content into memory and returns the file's size.
    fn loaded(&mut self, inode: Inode) -> Result<u64, Errno> {
        let size = self.row(inode)?.size;
        self.load(inode, size)?;
        Ok(size)
    }

    fn replayed(&mut self, inode: Inode, size: u64, since: FileTime) {
        // A content without unsent octets stays too, until the replay ends.
        self.mark(inode, size, since);
    }

    /// Changes a row of the volume on behalf of this mount, untold by the tree.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn change(&mut self, change: Change) -> Result<(), Errno> {
        self.forget_content(&change);
        self.tree.change(change)
    }

    /// The chain has this row from now on. Returns what the chain had before.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn confirm(&mut self, change: Change, generation: u64) -> Result<Option<Bytes>, Errno> {
        self.tree.confirm(change, generation)
    }

    /// A row of the chain's, for a row that this mount has not changed.
    ///
    /// # Errors
    ///
    /// Failures to read rows.
    pub fn apply(&mut self, change: Change, generation: u64) -> Result<(), Errno> {
        self.forget_content(&change);
        self.tree.apply(change, generation)
    }

    fn forget_content(&mut self, change: &Change) {
        match Key::decode(&change.key) {
            // The content is read again when wanted.
            Ok(Key::Extents { inode, .. }) => self.reload(inode),
            Ok(Key::Inode(inode)) if change.value.is_none() => self.discard(inode),
            _ => {}
        }
    }

    /// Applies a row from the journal. The journal does not tell rows of extents: they end here with their inode, and
    /// [`Tree::take_changes`](crate::tree::Tree::take_changes) tells of them.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows.
    pub fn replay_row(&mut self, change: Change) -> Result<(), Errno> {
        let ended = match Key::decode(&change.key) {
            Ok(Key::Inode(inode)) if change.value.is_none() => Some(inode),
            _ => None,
        };
        self.change(change)?;
        if let Some(inode) = ended {
            for key in self.tree.keys(&extents_prefix(inode))? {
                self.tree.remove(&key)?;
            }
        }
        Ok(())
    }

    /// Ends the files that were open and without a name when the writer's last mount ended.
    ///
    /// # Errors
    ///
    /// Failures to read or write rows.
    pub fn end_nameless(&mut self) -> Result<(), Errno> {
        let prefix = unnamed_prefix(self.numbers.writer());
        for key in self.tree.keys(&prefix)? {
            let unnamed = match Key::decode(&key) {
                Ok(Key::Unnamed { inode, .. }) => Some(inode),
                _ => None,
            };
            // A file of a session that goes on ends with its last close.
            if unnamed.is_some_and(|inode| self.opens.contains_key(&inode)) {
                continue;
            }
            self.tree.remove(&key)?;
            if let Some(inode) = unnamed {
                self.closed(inode)?;
            }
        }
        Ok(())
    }
}
