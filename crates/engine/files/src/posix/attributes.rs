//! Changes of facts.

use vere_ports::files::{Attributes, Changes, Errno, FileKind, FileTime, Inode, SetTime};

use super::state::Files;
use crate::rows::{FILE_SIZE_MAX, InodeRow, xattr_key};

/// The set-user-id bit.
const SET_USER_ID: u16 = 0o4000;
/// The set-group-id bit.
const SET_GROUP_ID: u16 = 0o2000;
/// Execution by the group; without this bit set-group-id is no privilege.
const GROUP_EXECUTES: u16 = 0o010;
/// The attribute with a program's capabilities.
pub(super) const CAPABILITY: &[u8] = b"security.capability";

impl Files {
    pub(super) fn set_attributes(
        &mut self,
        inode: Inode,
        changes: Changes,
        now: FileTime,
    ) -> Result<Attributes, Errno> {
        let mut row = self.row(inode)?;
        if changes == Changes::default() {
            return self.attributes(inode, &row);
        }
        if changes.mode.is_some() && row.kind == FileKind::Symlink {
            return Err(Errno::OpNotSupp);
        }
        if let Some(size) = changes.size {
            self.resize(inode, &mut row, size, now)?;
        }
        let owner = changes.uid.is_some() || changes.gid.is_some();
        row.uid = changes.uid.unwrap_or(row.uid);
        row.gid = changes.gid.unwrap_or(row.gid);
        if changes.kill_set_id || (owner && !row.is_folder()) {
            self.drop_privileges(inode, &mut row)?;
        }
        if let Some(mode) = changes.mode {
            row.mode = mode & 0o7777;
        }
        let time = |time| match time {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        row.atime = changes.atime.map_or(row.atime, time);
        row.mtime = changes.mtime.map_or(row.mtime, time);
        row.ctime = now;
        self.put_row(inode, &row)?;
        self.unload(inode);
        self.attributes(inode, &row)
    }

    /// Ends what a program gains by executing the file.
    pub(super) fn drop_privileges(
        &mut self,
        inode: Inode,
        row: &mut InodeRow,
    ) -> Result<(), Errno> {
        row.mode &= !SET_USER_ID;
        if row.mode & GROUP_EXECUTES != 0 {
            row.mode &= !SET_GROUP_ID;
        }
        self.tree.remove(&xattr_key(inode, CAPABILITY))?;
        Ok(())
    }

    /// Sets the size of a file; the caller writes the row.
    pub(super) fn resize(
        &mut self,
        inode: Inode,
        row: &mut InodeRow,
        size: u64,
        now: FileTime,
    ) -> Result<(), Errno> {
        match row.kind {
            FileKind::File => {}
            FileKind::Folder => return Err(Errno::IsDir),
            _ => return Err(Errno::Inval),
        }
        if size > FILE_SIZE_MAX {
            return Err(Errno::FBig);
        }
        if size < row.size {
            self.cut(inode, row, (size, u64::MAX), now)?;
        }
        self.set_size(inode, row, size);
        row.mtime = now;
        row.ctime = now;
        Ok(())
    }
}
