//! Content that servers have lost before a commit named the content.

use bytes::Bytes;
use vere_ports::files::{Errno, FileTime, Inode};

use super::outcome::ContentChange;
use super::state::Files;

impl Files {
    /// Octets of a file, as programs see them, are on no server: they count as unsent again. Times and sizes stay, and the rows
    /// have the content of this size until then. Returns the change for the journal.
    ///
    /// # Errors
    ///
    /// Failures to read rows; EIO for a wrong row.
    pub fn write_again(
        &mut self,
        inode: Inode,
        (offset, data): (u64, Bytes),
        stored_size: u64,
        now: FileTime,
    ) -> Result<ContentChange, Errno> {
        let size = self.row(inode)?.size;
        self.load(inode, size)?;
        let content = self.contents.get_mut(&inode).ok_or(Errno::Io)?;
        let (id, skip) = content.write(offset, &data, &mut self.unsent);
        self.mark(inode, stored_size, now);
        Ok(ContentChange::Write {
            inode,
            offset,
            id,
            skip,
            data,
        })
    }
}
