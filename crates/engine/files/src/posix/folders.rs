//! Listing of folders.

use std::ops::ControlFlow;

use vere_ports::files::{Entry, Errno, FileKind, FileTime, Handle, Inode};

use super::state::{Files, Open};
use crate::rows::{EntryRow, InodeRow, decode_entry, entries_prefix, entry_key};

/// Entries of a reply without facts: a page of 4 KiB holds about a hundred.
const ENTRIES: usize = 128;
/// Entries of a reply with facts: a page of 4 KiB holds about 25.
const ENTRIES_WITH_ATTRIBUTES: usize = 32;
/// The cursor of `.`.
const DOT: u64 = 1;
/// The cursor of `..`, which the cursors of names follow.
const DOT_DOT: u64 = 2;

impl Files {
    pub(super) fn open_folder(&mut self, inode: Inode) -> Result<Handle, Errno> {
        self.folder(inode)?;
        let names = Vec::new();
        Ok(self.new_handle(Open::Folder { inode, names }))
    }

    /// The entries behind a cursor. A cursor of 0 begins the listing anew.
    pub(super) fn read_folder(
        &mut self,
        handle: Handle,
        cursor: u64,
        with_attributes: bool,
        now: FileTime,
    ) -> Result<Vec<Entry>, Errno> {
        let Some(Open::Folder { inode, names }) = self.handles.get_mut(&handle) else {
            return Err(Errno::BadF);
        };
        let inode = *inode;
        if cursor == 0 {
            names.clear();
        }
        let row = self.folder(inode)?;
        self.accessed(inode, &row, now)?;
        if row.links == 0 {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for (at, name, inode) in [(DOT, &b"."[..], inode), (DOT_DOT, b"..", Inode(row.parent))] {
            if at > cursor {
                entries.push(Entry {
                    name: name.to_vec(),
                    inode,
                    kind: FileKind::Folder,
                    cursor: at,
                    attributes: None,
                });
            }
        }
        let most = entries_most(with_attributes);
        let mut behind = cursor.max(DOT_DOT);
        loop {
            self.names_behind(handle, &row, position(behind), most, &mut entries)?;
            let last = entries.last().map(|entry| entry.cursor);
            if with_attributes {
                self.add_attributes(&mut entries)?;
            }
            // A reply without entries means the end, so names without facts are passed over here.
            match last {
                Some(last) if entries.is_empty() => behind = last,
                _ => break,
            }
        }
        Ok(entries)
    }

    /// Appends entries behind the first `known` names of the handle's list.
    fn names_behind(
        &mut self,
        handle: Handle,
        folder: &InodeRow,
        known: usize,
        most: usize,
        entries: &mut Vec<Entry>,
    ) -> Result<(), Errno> {
        let Some(Open::Folder { names, .. }) = self.handles.get_mut(&handle) else {
            return Err(Errno::BadF);
        };
        let home = folder.home_or_device;
        let prefix = entries_prefix(home);
        let mut damaged = None;
        // Names that were listed keep their cursors; those that are gone are left out.
        let mut at = known;
        while let Some(name) = names.get(at).filter(|_| entries.len() < most) {
            at = at.saturating_add(1);
            let key = entry_key(home, name);
            if let Some(value) = self.tree.get(&key)? {
                match decode_entry(&value) {
                    Ok(row) => entries.push(listed(name, row, at)),
                    Err(error) => damaged = Some((key, error)),
                }
            }
        }
        let behind = names.last().map(|name| entry_key(home, name));
        if at >= names.len() && entries.len() < most {
            self.tree
                .visit(&prefix, behind.as_deref(), &mut |key, value| {
                    let name = key.get(prefix.len()..).unwrap_or_default();
                    names.push(name.into());
                    match decode_entry(value) {
                        Ok(row) => entries.push(listed(name, row, names.len())),
                        Err(error) => damaged = Some((key.to_vec(), error)),
                    }
                    Ok(if entries.len() < most {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    })
                })?;
        }
        if let Some((key, error)) = damaged {
            // The other entries stay in reach.
            self.damaged(&key, error.to_string());
        }
        Ok(())
    }

    /// Adds facts, and leaves out names whose inodes cannot be read: a host has no form for such entries.
    fn add_attributes(&mut self, entries: &mut Vec<Entry>) -> Result<(), Errno> {
        let mut missing = Ok(());
        entries.retain_mut(|entry| {
            if entry.cursor <= DOT_DOT {
                return true;
            }
            let row = self.named_row(entry.inode);
            let facts = row.and_then(|row| Ok((self.attributes(entry.inode, &row)?, row)));
            if facts == Err(Errno::Again) {
                missing = Err(Errno::Again);
            }
            let Ok((attributes, row)) = facts else {
                return false;
            };
            entry.attributes = Some(attributes);
            self.looked_up(entry.inode, &row);
            true
        });
        missing
    }
}

/// Entries of a reply.
pub(super) const fn entries_most(with_attributes: bool) -> usize {
    if with_attributes {
        ENTRIES_WITH_ATTRIBUTES
    } else {
        ENTRIES
    }
}

/// The position in the handle's list of the first name behind a cursor.
pub(super) fn position(cursor: u64) -> usize {
    usize::try_from(cursor.saturating_sub(DOT_DOT)).unwrap_or(usize::MAX)
}

/// The entry of the name at a position of the handle's list, from 1 on.
fn listed(name: &[u8], row: EntryRow, position: usize) -> Entry {
    Entry {
        name: name.to_vec(),
        inode: row.inode,
        kind: row.kind,
        cursor: DOT_DOT.saturating_add(position as u64),
        attributes: None,
    }
}
