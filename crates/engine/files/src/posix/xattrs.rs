//! Extended attributes.

use std::ops::ControlFlow;

use bytes::Bytes;
use vere_ports::files::{Caller, Errno, FileKind, FileTime, Inode, XattrMode};

use super::state::Files;
use crate::rows::{InodeRow, NAME_OCTETS_MAX, XATTR_OCTETS_MAX, xattr_key, xattrs_prefix};

/// Octets of all names of an inode with their NULs: `listxattr` cannot return more.
const NAMES_OCTETS_MAX: usize = 64 * 1024;
/// The namespace that only the superuser sees.
const TRUSTED: &[u8] = b"trusted.";
/// The namespaces of the kernel that are kept.
const NAMESPACES: [&[u8]; 3] = [b"user.", TRUSTED, b"security."];

/// Refuses names outside the namespaces, as Linux does.
fn check_name(name: &[u8]) -> Result<(), Errno> {
    if name.len() > NAME_OCTETS_MAX {
        return Err(Errno::NameTooLong);
    }
    let space = NAMESPACES.iter().find(|space| name.starts_with(space));
    let space = space.ok_or(Errno::OpNotSupp)?;
    if name.len() == space.len() || name.contains(&0) {
        return Err(Errno::Inval);
    }
    Ok(())
}

/// Programs keep `user.` attributes on files and folders only: permissions of other inodes say nothing about their content.
fn takes(row: &InodeRow, name: &[u8]) -> bool {
    let content = matches!(row.kind, FileKind::File | FileKind::Folder);
    content || !name.starts_with(b"user.")
}

impl Files {
    pub(super) fn set_xattr(
        &mut self,
        inode: Inode,
        name: &[u8],
        value: Vec<u8>,
        mode: XattrMode,
        now: FileTime,
    ) -> Result<(), Errno> {
        check_name(name)?;
        let mut row = self.row(inode)?;
        if !takes(&row, name) {
            return Err(Errno::Perm);
        }
        if value.len() > XATTR_OCTETS_MAX {
            return Err(Errno::TooBig);
        }
        if self.ghosts.contains_key(&inode) {
            return Err(Errno::NoEnt);
        }
        let key = xattr_key(inode, name);
        match (self.tree.contains(&key)?, mode) {
            (true, XattrMode::Create) => return Err(Errno::Exist),
            (false, XattrMode::Replace) => return Err(Errno::NoData),
            (false, _) => self.check_room_for(inode, name)?,
            (true, _) => {}
        }
        self.tree.put(&key, value)?;
        row.ctime = now;
        self.put_row(inode, &row)
    }

    fn check_room_for(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        let mut octets = name.len().saturating_add(1);
        let prefix = xattrs_prefix(inode);
        self.tree.visit(&prefix, None, &mut |key, _| {
            let name = key.len().saturating_sub(prefix.len());
            octets = octets.saturating_add(name).saturating_add(1);
            Ok(ControlFlow::Continue(()))
        })?;
        if octets > NAMES_OCTETS_MAX {
            return Err(Errno::NoSpc);
        }
        Ok(())
    }

    pub(super) fn get_xattr(&mut self, inode: Inode, name: &[u8]) -> Result<Bytes, Errno> {
        check_name(name)?;
        self.row(inode)?;
        let value = self.tree.get(&xattr_key(inode, name))?;
        value.ok_or(Errno::NoData)
    }

    pub(super) fn list_xattrs(
        &mut self,
        caller: Caller,
        inode: Inode,
    ) -> Result<Vec<Vec<u8>>, Errno> {
        self.row(inode)?;
        let mut names = Vec::new();
        let prefix = xattrs_prefix(inode);
        self.tree.visit(&prefix, None, &mut |key, _| {
            let name = key.get(prefix.len()..).unwrap_or_default();
            if caller.uid == 0 || !name.starts_with(TRUSTED) {
                names.push(name.to_vec());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(names)
    }

    pub(super) fn remove_xattr(
        &mut self,
        inode: Inode,
        name: &[u8],
        now: FileTime,
    ) -> Result<(), Errno> {
        check_name(name)?;
        let mut row = self.row(inode)?;
        if !takes(&row, name) {
            return Err(Errno::Perm);
        }
        if !self.tree.remove(&xattr_key(inode, name))? {
            return Err(Errno::NoData);
        }
        row.ctime = now;
        self.put_row(inode, &row)
    }
}
