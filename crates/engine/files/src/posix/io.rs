//! Reads and writes, and the bookkeeping of changed contents.

use bytes::Bytes;
use vere_ports::files::{Errno, FileTime, Handle, Inode, Reply};

use super::outcome::{ContentChange, Outcome, ReadPlan};
use super::state::{Dirty, Files};
use crate::content::save;
use crate::rows::{FILE_SIZE_MAX, InodeRow};

impl Files {
    pub(super) fn read(
        &mut self,
        handle: Handle,
        offset: u64,
        size: u32,
        now: FileTime,
    ) -> Result<Outcome, Errno> {
        // Reads through a handle for writing are the kernel's, which reads the rest of a page that a program writes.
        let (inode, _) = self.file(handle)?;
        let row = self.row(inode)?;
        let end = offset.saturating_add(u64::from(size)).min(row.size);
        if offset >= end {
            return Ok(Outcome::Reply(Ok(Reply::Octets(Bytes::new()))));
        }
        self.load(inode, row.size)?;
        self.accessed(inode, &row, now)?;
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        let pieces = content.plan(offset, end);
        Ok(Outcome::Read(ReadPlan {
            inode,
            offset,
            pieces,
        }))
    }

    /// The content of a loaded file's range, for reads ahead of need.
    #[must_use]
    pub fn plan_ahead(&self, inode: Inode, offset: u64, length: u64) -> Option<ReadPlan> {
        let content = self.contents.get(&inode)?;
        let pieces = content.plan(offset, offset.saturating_add(length));
        Some(ReadPlan {
            inode,
            offset,
            pieces,
        })
    }

    /// The whole content of a file that has octets, and no more than so many.
    pub fn plan_whole(&mut self, inode: Inode, octets_max: u64) -> Option<ReadPlan> {
        let size = self.row(inode).ok()?.size;
        if size == 0 || size > octets_max {
            return None;
        }
        // A content that cannot be read is reported by the read.
        self.load(inode, size).ok()?;
        self.plan_ahead(inode, 0, size)
    }

    pub(super) fn write(
        &mut self,
        handle: Handle,
        offset: u64,
        data: Bytes,
        kill_set_id: bool,
        now: FileTime,
    ) -> Result<Outcome, Errno> {
        let (inode, flags) = self.writable(handle)?;
        let written = u32::try_from(data.len()).map_err(|_| Errno::Inval)?;
        let reply = Reply::Written(written);
        if written == 0 {
            return Ok(Outcome::Reply(Ok(reply)));
        }
        let mut row = self.row(inode)?;
        let offset = if flags.append { row.size } else { offset };
        let end = offset.saturating_add(u64::from(written));
        if end > FILE_SIZE_MAX {
            return Err(Errno::FBig);
        }
        self.load(inode, row.size)?;
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        let (id, skip) = content.write(offset, &data, &mut self.unsent);
        let change = ContentChange::Write {
            inode,
            offset,
            id,
            skip,
            data,
        };
        self.content_changed(inode, &mut row, [change], now)?;
        let size = row.size.max(end);
        self.set_size(inode, &mut row, size);
        row.mtime = now;
        row.ctime = now;
        if kill_set_id {
            self.drop_privileges(inode, &mut row)?;
        }
        self.put_row(inode, &row)?;
        Ok(durable(inode, flags.sync, reply))
    }

    /// Makes a hole; the caller writes the row.
    pub(super) fn cut(
        &mut self,
        inode: Inode,
        row: &mut InodeRow,
        (from, to): (u64, u64),
        now: FileTime,
    ) -> Result<(), Errno> {
        self.load(inode, row.size)?;
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        content.cut(from, to, &mut self.unsent);
        let change = ContentChange::Cut { inode, from, to };
        self.content_changed(inode, row, [change], now)
    }

    /// Records a change of content. A content without unsent octets goes into rows at once; otherwise the rows keep the
    /// content that the servers have.
    pub(super) fn content_changed(
        &mut self,
        inode: Inode,
        row: &mut InodeRow,
        changes: impl IntoIterator<Item = ContentChange>,
        now: FileTime,
    ) -> Result<(), Errno> {
        if self.ghosts.contains_key(&inode) {
            return Ok(());
        }
        self.content_changes.extend(changes);
        if self.mark(inode, row.size, now) {
            return Ok(());
        }
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        if save(content, &mut self.tree, inode)? {
            row.generation = row.generation.saturating_add(1);
        }
        Ok(())
    }

    /// Notes whether a file has unsent octets, and tells so.
    pub(super) fn mark(&mut self, inode: Inode, stored_size: u64, since: FileTime) -> bool {
        let unsent = self
            .contents
            .get(&inode)
            .map_or(0, |content| content.unsent_octets());
        if unsent == 0 {
            self.clean(inode);
            return false;
        }
        if !self.dirty.contains_key(&inode) {
            let order = self.dirty_next;
            self.dirty_next = order.saturating_add(1);
            let dirty = Dirty {
                order,
                since,
                stored_size,
            };
            self.dirty.insert(inode, dirty);
            self.dirty_order.insert(order, inode);
        }
        true
    }

    /// Sets the size in the row of a file, which counts as a change of the stored content if no octets are unsent.
    pub(super) fn set_size(&self, inode: Inode, row: &mut InodeRow, size: u64) {
        if row.size != size && !self.dirty.contains_key(&inode) {
            row.generation = row.generation.saturating_add(1);
        }
        row.size = size;
    }
}

/// The outcome of a write.
pub(super) fn durable(inode: Inode, sync: bool, reply: Reply) -> Outcome {
    if sync {
        let inode = Some(inode);
        return Outcome::Sync { inode, reply };
    }
    Outcome::Reply(Ok(reply))
}
