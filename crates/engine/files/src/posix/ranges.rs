//! Ranges of files: room, holes, and copies.

use vere_ports::files::{Allocate, Errno, FileTime, Handle, Inode, Reply, Seek};

use super::io::durable;
use super::outcome::{ContentChange, Outcome};
use super::state::Files;
use crate::content::Source;
use crate::rows::FILE_SIZE_MAX;

/// Octets that a copy moves at most, as Linux has it for a single call.
const COPY_OCTETS_MAX: u64 = 0x7fff_f000;

impl Files {
    pub(super) fn allocate(
        &mut self,
        handle: Handle,
        (offset, length): (u64, u64),
        mode: Allocate,
        now: FileTime,
    ) -> Result<Outcome, Errno> {
        let (inode, flags) = self.writable(handle)?;
        if length == 0 {
            return Err(Errno::Inval);
        }
        let end = offset.checked_add(length);
        let end = end.filter(|end| *end <= FILE_SIZE_MAX);
        let end = end.ok_or(Errno::FBig)?;
        let mut row = self.row(inode)?;
        // Room behind the end is no state of a file here, so only holes and sizes change.
        if matches!(mode, Allocate::PunchHole | Allocate::ZeroRange { .. }) {
            let hole = (offset, end.min(row.size));
            self.cut(inode, &mut row, hole, now)?;
        }
        if matches!(
            mode,
            Allocate::Plain | Allocate::ZeroRange { keep_size: false }
        ) {
            let size = row.size.max(end);
            self.set_size(inode, &mut row, size);
        }
        row.mtime = now;
        row.ctime = now;
        self.put_row(inode, &row)?;
        Ok(durable(inode, flags.sync, Reply::Done))
    }

    pub(super) fn seek(&mut self, handle: Handle, offset: u64, seek: Seek) -> Result<u64, Errno> {
        let (inode, _) = self.file(handle)?;
        let row = self.row(inode)?;
        if offset >= row.size {
            return Err(Errno::NxIo);
        }
        self.load(inode, row.size)?;
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        match seek {
            Seek::Data => content.next_data(offset).ok_or(Errno::NxIo),
            Seek::Hole => Ok(content.next_hole(offset).min(row.size)),
        }
    }

    pub(super) fn copy_range(
        &mut self,
        (from, from_offset): (Handle, u64),
        (to, to_offset): (Handle, u64),
        length: u64,
        now: FileTime,
    ) -> Result<Outcome, Errno> {
        let (source, read) = self.file(from)?;
        let (inode, flags) = self.writable(to)?;
        if !read.read || flags.append {
            return Err(Errno::BadF);
        }
        let source_row = self.row(source)?;
        let length = length.min(COPY_OCTETS_MAX);
        let length = length.min(source_row.size.saturating_sub(from_offset));
        let end = to_offset.saturating_add(length);
        if end > FILE_SIZE_MAX {
            return Err(Errno::FBig);
        }
        let apart = from_offset.abs_diff(to_offset) >= length;
        if source == inode && !apart {
            return Err(Errno::Inval);
        }
        let reply = Reply::Written(u32::try_from(length).map_err(|_| Errno::Inval)?);
        if length == 0 {
            return Ok(Outcome::Reply(Ok(reply)));
        }
        self.accessed(source, &source_row, now)?;
        let mut row = self.row(inode)?;
        self.load(source, source_row.size)?;
        self.load(inode, row.size)?;
        self.copy_pieces((source, from_offset), (inode, to_offset), length)?;
        let changes = self.told(inode, to_offset, end)?;
        self.content_changed(inode, &mut row, changes, now)?;
        let size = row.size.max(end);
        self.set_size(inode, &mut row, size);
        row.mtime = now;
        row.ctime = now;
        self.put_row(inode, &row)?;
        Ok(durable(inode, flags.sync, reply))
    }

    /// The content of a range as changes, which need no other file when they are replayed.
    fn told(&self, inode: Inode, from: u64, to: u64) -> Result<Vec<ContentChange>, Errno> {
        let content = self.contents.get(&inode).ok_or(Errno::Io)?;
        let mut offset = from;
        let mut changes = Vec::new();
        for piece in content.plan(from, to) {
            let length = piece.length;
            let end = offset.saturating_add(length.into());
            changes.push(match piece.source {
                Source::Zero => ContentChange::Cut {
                    inode,
                    from: offset,
                    to: end,
                },
                Source::Chunk { extent, skip } => ContentChange::Chunk {
                    inode,
                    offset,
                    length,
                    extent,
                    skip,
                },
                Source::Unsent { id, skip } => ContentChange::Write {
                    inode,
                    offset,
                    id,
                    skip,
                    data: self.unsent.get(id, skip, length).ok_or(Errno::Io)?,
                },
            });
            offset = end;
        }
        Ok(changes)
    }

    /// Lets a range of a file consist of the pieces of another range.
    pub(super) fn copy_pieces(
        &mut self,
        (from, from_offset): (Inode, u64),
        (to, to_offset): (Inode, u64),
        length: u64,
    ) -> Result<(), Errno> {
        let source = self.contents.get(&from).ok_or(Errno::Io)?;
        let pieces = source.pieces_in(from_offset, from_offset.saturating_add(length));
        let content = self.contents.get_mut(&to).ok_or(Errno::Io)?;
        content.cut(
            to_offset,
            to_offset.saturating_add(length),
            &mut self.unsent,
        );
        for (at, piece) in pieces {
            let at = at.saturating_sub(from_offset).saturating_add(to_offset);
            content.put(at, piece, &mut self.unsent);
        }
        Ok(())
    }
}
