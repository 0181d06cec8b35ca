//! Calls to operations.

use vere_ports::files::{Call, Caller, Errno, FileKind, FileTime, Inode, Reply};

use super::names::New;
use super::outcome::Outcome;
use super::state::Files;

impl Files {
    /// Does what a program wants. `now` never runs backwards.
    pub fn call(&mut self, caller: Caller, call: Call, now: FileTime) -> Outcome {
        let outcome = match call {
            Call::Read {
                handle,
                offset,
                size,
            } => self.read(handle, offset, size, now),
            Call::Write {
                handle,
                offset,
                data,
                kill_set_id,
            } => self.write(handle, offset, data, kill_set_id, now),
            Call::Fsync { handle, .. } | Call::FsyncFolder { handle } => self.fsync(handle),
            Call::Allocate {
                handle,
                offset,
                length,
                mode,
            } => self.allocate(handle, (offset, length), mode, now),
            Call::CopyRange {
                from,
                from_offset,
                to,
                to_offset,
                length,
            } => self.copy_range((from, from_offset), (to, to_offset), length, now),
            other => self
                .reply(caller, other, now)
                .map(|reply| Outcome::Reply(Ok(reply))),
        };
        outcome.unwrap_or_else(|errno| Outcome::Reply(Err(errno)))
    }

    fn reply(&mut self, caller: Caller, call: Call, now: FileTime) -> Result<Reply, Errno> {
        match call {
            Call::Forget { inode, lookups } => {
                self.forget(inode, lookups);
                Ok(Reply::Done)
            }
            Call::GetAttributes { inode } => {
                let row = self.row(inode)?;
                self.attributes(inode, &row).map(Reply::Attributes)
            }
            Call::SetAttributes { inode, changes } => {
                let attributes = self.set_attributes(inode, changes, now)?;
                Ok(Reply::Attributes(attributes))
            }
            Call::ReadLink { inode } => {
                let row = self.row(inode)?;
                if row.kind != FileKind::Symlink {
                    return Err(Errno::Inval);
                }
                self.accessed(inode, &row, now)?;
                Ok(Reply::Octets(row.target.into()))
            }
            Call::Open { inode, flags } => {
                let handle = self.open(caller, inode, flags, now)?;
                let keep_cache = true;
                Ok(Reply::Opened { handle, keep_cache })
            }
            Call::Create {
                parent,
                name,
                mode,
                flags,
            } => {
                let (attributes, handle) =
                    self.create(caller, (parent, &name), mode, flags, now)?;
                Ok(Reply::Created(attributes, handle))
            }
            Call::Flush { handle } => self.file(handle).map(|_| Reply::Done),
            Call::Release { handle } | Call::ReleaseFolder { handle } => {
                self.release(handle).map(|()| Reply::Done)
            }
            Call::OpenFolder { inode } => {
                let handle = self.open_folder(inode)?;
                let keep_cache = true;
                Ok(Reply::Opened { handle, keep_cache })
            }
            Call::ReadFolder {
                handle,
                cursor,
                with_attributes,
            } => {
                let entries = self.read_folder(handle, cursor, with_attributes, now)?;
                Ok(Reply::Entries(entries))
            }
            Call::Statistics => Ok(Reply::Statistics(self.room)),
            Call::Seek {
                handle,
                offset,
                seek,
            } => self.seek(handle, offset, seek).map(Reply::Offset),
            other => self.names_and_xattrs(caller, other, now),
        }
    }

    fn names_and_xattrs(
        &mut self,
        caller: Caller,
        call: Call,
        now: FileTime,
    ) -> Result<Reply, Errno> {
        match call {
            Call::Lookup { parent, name } => self.lookup(parent, &name).map(Reply::Entry),
            Call::MakeNode {
                parent,
                name,
                kind,
                mode,
                device,
            } => {
                let device = match kind {
                    FileKind::CharDevice | FileKind::BlockDevice => device,
                    FileKind::Folder | FileKind::Symlink => return Err(Errno::Inval),
                    _ => 0,
                };
                self.new_entry(caller, (parent, &name), (kind, mode, device), now)
            }
            Call::MakeFolder { parent, name, mode } => {
                let facts = (FileKind::Folder, mode, 0);
                self.new_entry(caller, (parent, &name), facts, now)
            }
            Call::Symlink {
                parent,
                name,
                target,
            } => {
                let attributes = self.symlink(caller, (parent, &name), target, now)?;
                Ok(Reply::Entry(attributes))
            }
            Call::Link {
                inode,
                parent,
                name,
            } => self.link(inode, (parent, &name), now).map(Reply::Entry),
            Call::Unlink { parent, name } => self.unlink(parent, &name, now).map(|()| Reply::Done),
            Call::RemoveFolder { parent, name } => {
                self.remove_folder(parent, &name, now).map(|()| Reply::Done)
            }
            Call::Rename {
                parent,
                name,
                new_parent,
                new_name,
                mode,
            } => {
                self.rename((parent, &name), (new_parent, &new_name), mode, now)?;
                Ok(Reply::Done)
            }
            Call::SetXattr {
                inode,
                name,
                value,
                mode,
            } => {
                self.set_xattr(inode, &name, value, mode, now)?;
                Ok(Reply::Done)
            }
            Call::GetXattr { inode, name } => self.get_xattr(inode, &name).map(Reply::Octets),
            Call::ListXattrs { inode } => self.list_xattrs(caller, inode).map(Reply::Names),
            Call::RemoveXattr { inode, name } => {
                self.remove_xattr(inode, &name, now).map(|()| Reply::Done)
            }
            // Calls with an open file are answered above.
            _ => Err(Errno::OpNotSupp),
        }
    }

    fn new_entry(
        &mut self,
        caller: Caller,
        place: (Inode, &[u8]),
        (kind, mode, device): (FileKind, u16, u32),
        now: FileTime,
    ) -> Result<Reply, Errno> {
        let new = New {
            kind,
            mode,
            device,
            target: Vec::new(),
        };
        self.make(caller, place, new, now).map(Reply::Entry)
    }
}
