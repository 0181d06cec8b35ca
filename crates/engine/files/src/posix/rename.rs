//! Renames.

use vere_ports::files::{Errno, FileTime, Inode, RenameMode};

use super::names::{LINKS_MAX, check_name, is_dots};
use super::state::Files;
use crate::rows::{EntryRow, InodeRow, entry_key};

/// Folders above a folder; a longer way up is a circle of wrong rows.
pub(super) const DEPTH_MAX: u32 = 1_000_000;

/// A name with what lies there.
struct Place<'a> {
    parent: Inode,
    name: &'a [u8],
    inode: Inode,
    row: InodeRow,
}

impl Files {
    pub(super) fn rename(
        &mut self,
        (parent, name): (Inode, &[u8]),
        (new_parent, new_name): (Inode, &[u8]),
        mode: RenameMode,
        now: FileTime,
    ) -> Result<(), Errno> {
        check_name(name)?;
        check_name(new_name)?;
        let old_folder = self.folder(parent)?;
        let new_folder = self.folder(new_parent)?;
        if is_dots(name) || is_dots(new_name) {
            return Err(Errno::Busy);
        }
        if new_folder.links == 0 {
            return Err(Errno::NoEnt);
        }
        let from = self.entry(old_folder.home_or_device, name)?;
        let from = from.ok_or(Errno::NoEnt)?;
        let to = self.entry(new_folder.home_or_device, new_name)?;
        match (to, mode) {
            (Some(_), RenameMode::NoReplace) => return Err(Errno::Exist),
            (None, RenameMode::Exchange) => return Err(Errno::NoEnt),
            _ => {}
        }
        let from = self.place((parent, name), from)?;
        if from.row.is_folder() && self.is_below(new_parent, from.inode)? {
            return Err(Errno::Inval);
        }
        let Some(to) = to else {
            return self.move_to(from, (new_parent, new_name), now);
        };
        let to = self.place((new_parent, new_name), to)?;
        if to.row.is_folder() && self.is_below(parent, to.inode)? {
            return Err(match mode {
                RenameMode::Exchange => Errno::Inval,
                _ => Errno::NotEmpty,
            });
        }
        if from.inode == to.inode {
            // Two names of one file: both stay, as POSIX wants.
            return Ok(());
        }
        if mode == RenameMode::Exchange {
            return self.exchange(from, to, now);
        }
        self.check_replaced(&from, &to)?;
        self.replace(from, to, now)
    }

    fn place<'a>(
        &mut self,
        (parent, name): (Inode, &'a [u8]),
        entry: EntryRow,
    ) -> Result<Place<'a>, Errno> {
        Ok(Place {
            parent,
            name,
            inode: entry.inode,
            row: self.row(entry.inode)?,
        })
    }

    /// Whether a folder is another folder or lies somewhere below.
    fn is_below(&mut self, folder: Inode, above: Inode) -> Result<bool, Errno> {
        let mut at = folder;
        for _ in 0..DEPTH_MAX {
            if at == above {
                return Ok(true);
            }
            if at == Inode::ROOT {
                return Ok(false);
            }
            at = Inode(self.folder(at)?.parent);
        }
        Err(Errno::Io)
    }

    fn check_replaced(&self, from: &Place<'_>, to: &Place<'_>) -> Result<(), Errno> {
        match (from.row.is_folder(), to.row.is_folder()) {
            (true, false) => Err(Errno::NotDir),
            (false, true) => Err(Errno::IsDir),
            (true, true) => self.check_empty(&to.row),
            (false, false) => Ok(()),
        }
    }

    /// Gives an inode a free name.
    fn move_to(
        &mut self,
        from: Place<'_>,
        (parent, name): (Inode, &[u8]),
        now: FileTime,
    ) -> Result<(), Errno> {
        if from.row.is_folder() && from.parent != parent {
            let folder = self.folder(parent)?;
            if folder.links >= LINKS_MAX {
                return Err(Errno::MLink);
            }
        }
        self.settle(&from, parent, now)?;
        self.set_entry((parent, name), &from)?;
        self.clear_entry((from.parent, from.name))?;
        let folder = u32::from(from.row.is_folder());
        self.moved((from.parent, folder), (parent, folder), now)
    }

    /// Gives an inode the name of another.
    fn replace(&mut self, from: Place<'_>, to: Place<'_>, now: FileTime) -> Result<(), Errno> {
        self.settle(&from, to.parent, now)?;
        self.set_entry((to.parent, to.name), &from)?;
        self.clear_entry((from.parent, from.name))?;
        // A folder replaces a folder, so that the new parent's links stay.
        let folder = u32::from(from.row.is_folder());
        self.moved((from.parent, folder), (to.parent, 0), now)?;
        self.unlinked(to.inode, to.row, now)
    }

    fn exchange(&mut self, from: Place<'_>, to: Place<'_>, now: FileTime) -> Result<(), Errno> {
        self.settle(&from, to.parent, now)?;
        self.settle(&to, from.parent, now)?;
        self.set_entry((to.parent, to.name), &from)?;
        self.set_entry((from.parent, from.name), &to)?;
        let (out, back) = (from.row.is_folder(), to.row.is_folder());
        let leaves = u32::from(out && !back);
        let comes = u32::from(back && !out);
        self.moved((from.parent, leaves), (to.parent, leaves), now)?;
        self.moved((to.parent, comes), (from.parent, comes), now)
    }

    /// Writes the row of an inode that gets a name in another folder.
    fn settle(&mut self, place: &Place<'_>, parent: Inode, now: FileTime) -> Result<(), Errno> {
        let mut row = place.row.clone();
        row.ctime = now;
        if row.is_folder() {
            row.parent = parent.0;
        }
        self.put_row(place.inode, &row)
    }

    fn set_entry(
        &mut self,
        (parent, name): (Inode, &[u8]),
        place: &Place<'_>,
    ) -> Result<(), Errno> {
        let folder = self.folder(parent)?;
        self.put_entry(folder.home_or_device, name, (place.inode, place.row.kind))
    }

    fn clear_entry(&mut self, (parent, name): (Inode, &[u8])) -> Result<(), Errno> {
        let folder = self.folder(parent)?;
        self.tree.remove(&entry_key(folder.home_or_device, name))?;
        Ok(())
    }

    /// Writes the rows of both folders: so many links less in the old folder, so many more in the new folder.
    fn moved(
        &mut self,
        (from, less): (Inode, u32),
        (to, more): (Inode, u32),
        now: FileTime,
    ) -> Result<(), Errno> {
        let mut folder = self.folder(from)?;
        folder.links = folder.links.saturating_sub(less);
        self.folder_changed(from, folder, now)?;
        let mut folder = self.folder(to)?;
        folder.links = folder.links.saturating_add(more);
        self.folder_changed(to, folder, now)
    }
}
