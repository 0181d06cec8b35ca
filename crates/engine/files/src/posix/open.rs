//! Opening and closing of files.

use vere_ports::files::{
    Attributes, Caller, Errno, FileKind, FileTime, Handle, Inode, OpenFlags, Reply,
};

use super::names::New;
use super::outcome::Outcome;
use super::state::{Files, Open};

impl Files {
    pub(super) fn open(
        &mut self,
        caller: Caller,
        inode: Inode,
        flags: OpenFlags,
        now: FileTime,
    ) -> Result<Handle, Errno> {
        let mut row = self.row(inode)?;
        match row.kind {
            FileKind::File => {}
            FileKind::Folder => return Err(Errno::IsDir),
            _ => return Err(Errno::NxIo),
        }
        if flags.truncate {
            self.resize(inode, &mut row, 0, now)?;
            if caller.uid != 0 {
                self.drop_privileges(inode, &mut row)?;
            }
            self.put_row(inode, &row)?;
        }
        Ok(self.opened(inode, flags))
    }

    pub(super) fn create(
        &mut self,
        caller: Caller,
        place: (Inode, &[u8]),
        mode: u16,
        flags: OpenFlags,
        now: FileTime,
    ) -> Result<(Attributes, Handle), Errno> {
        let new = New {
            kind: FileKind::File,
            mode,
            device: 0,
            target: Vec::new(),
        };
        let attributes = self.make(caller, place, new, now)?;
        let handle = self.opened(attributes.inode, flags);
        Ok((attributes, handle))
    }

    fn opened(&mut self, inode: Inode, flags: OpenFlags) -> Handle {
        let opens = self.opens.entry(inode).or_default();
        *opens = opens.saturating_add(1);
        self.new_handle(Open::File { inode, flags })
    }

    pub(super) fn new_handle(&mut self, open: Open) -> Handle {
        let handle = Handle(self.next_handle);
        self.next_handle = self.next_handle.saturating_add(1);
        self.handles.insert(handle, open);
        handle
    }

    pub(super) fn release(&mut self, handle: Handle) -> Result<(), Errno> {
        let open = self.handles.remove(&handle).ok_or(Errno::BadF)?;
        let Open::File { inode, .. } = open else {
            return Ok(());
        };
        let left = self
            .opens
            .get(&inode)
            .map_or(0, |opens| opens.saturating_sub(1));
        if left > 0 {
            self.opens.insert(inode, left);
            return Ok(());
        }
        self.opens.remove(&inode);
        self.closed(inode)
    }

    /// An open file.
    pub(super) fn file(&self, handle: Handle) -> Result<(Inode, OpenFlags), Errno> {
        match self.handles.get(&handle) {
            Some(Open::File { inode, flags }) => Ok((*inode, *flags)),
            Some(Open::Folder { .. }) => Err(Errno::IsDir),
            None => Err(Errno::BadF),
        }
    }

    /// An open file that may be written.
    pub(super) fn writable(&self, handle: Handle) -> Result<(Inode, OpenFlags), Errno> {
        let (inode, flags) = self.file(handle)?;
        if flags.write {
            Ok((inode, flags))
        } else {
            Err(Errno::BadF)
        }
    }

    pub(super) fn fsync(&self, handle: Handle) -> Result<Outcome, Errno> {
        let inode = match self.handles.get(&handle).ok_or(Errno::BadF)? {
            Open::File { inode, .. } => Some(*inode),
            // A sync of the root folder waits for everything: `syncfs` does not reach a mount.
            Open::Folder { inode, .. } => Some(*inode).filter(|inode| *inode != Inode::ROOT),
        };
        Ok(Outcome::Sync {
            inode,
            reply: Reply::Done,
        })
    }
}
