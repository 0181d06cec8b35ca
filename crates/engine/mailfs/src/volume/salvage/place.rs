//! Salvaged names and content as files of the tree.

use std::sync::Arc;

use vere_inventory::salvage::{
    FOLDER, Folder, LostFiles, Past, Placed, Restore, Restored, Salvaged, Targets, folder_rows,
    free_name, lost_writer, new_file, pack_rows, salvage_ends,
};
use vere_ports::files::{Caller, Errno, Inode};
use vere_ports::storage::Storage;

use super::super::state::Volume;
use super::super::step::Moment;
use super::super::upkeep::rows::RowSource;
use crate::rows::{Home, InodeRow, ROOT_HOME, entries_prefix, inode_key, inode_of};

impl<S: Storage> Volume<S> {
    /// Puts files and folders of surviving pages back, where the root folder is empty, or else into a folder `lost+found`; content
    /// without a file in the tree goes to `lost+found` too. `known` is the generation up to which the chain has everything. The rows
    /// go into commits; [`Self::take_upkept`] tells when all are there.
    ///
    /// # Errors
    /// Failures to read rows; EBUSY during a check or a collection; EAGAIN for a salvage that was broken off.
    pub fn salvage(
        &mut self,
        now: Moment,
        owner: Caller,
        found: &Arc<Salvaged>,
        known: u64,
    ) -> Result<Placed, Errno> {
        if !found.is_whole {
            return Err(Errno::Again);
        }
        let of = (owner, now.wall);
        let targets = self.targets()?;
        let plan = self.plan(found, targets, known)?;
        let mut placed = Placed {
            folder: free_name(self.files.tree(), plan.as_ref())?,
            restored: plan.as_ref().map(Restore::count).unwrap_or_default(),
            is_in_place: targets.is_in_place,
            ..Placed::default()
        };
        let mut files = LostFiles::of(self.files.tree(), found, plan.as_ref())?;
        let mut ends = salvage_ends(self.files.tree())?;
        if files.is_empty() && !placed.has_any() {
            for (key, value) in ends {
                self.change_row(key, value);
            }
            return Ok(placed);
        }
        for ((account, mailbox), number) in &found.validities {
            self.numbered(*account, *mailbox, *number);
        }
        let first = pack_rows(self.files.tree(), found)?;
        let (home, mut take) = (targets.lost.home, || self.take_home());
        let mut rows = files.rows((found, plan.as_ref()), (home, of), &mut take)?;
        (placed.files, placed.octets) = files.count();
        let tree = self.files.tree();
        folder_rows(tree, (plan.as_ref(), targets), of, &placed, &mut rows)?;
        rows.append(&mut ends);
        let source: Box<dyn RowSource>;
        let all;
        match plan {
            Some(plan) => {
                let blank = new_file(of);
                let restored = Restored::new(found.clone(), plan, (&blank, first), rows);
                all = restored.rows();
                source = Box::new(restored);
            }
            None => {
                all = first.len().saturating_add(rows.len());
                source = Box::new(first.into_iter().chain(rows));
            }
        }
        if self.begin_rows(now, source, all) {
            Ok(placed)
        } else {
            Err(Errno::Busy)
        }
    }

    /// New folders, and the root folder if empty.
    fn targets(&mut self) -> Result<Targets, Errno> {
        let is_in_place = !self.files.tree().any(&entries_prefix(ROOT_HOME))?;
        let own = self.take_home()?;
        let mut folder = |slot| -> Result<Folder, Errno> {
            Ok(Folder {
                inode: inode_of(own, slot),
                home: self.take_home()?,
            })
        };
        let (lost, other) = (folder(1)?, folder(2)?);
        let root = Folder {
            inode: Inode::ROOT,
            home: ROOT_HOME,
        };
        Ok(Targets {
            lost,
            root: if is_in_place { root } else { other },
            is_in_place,
        })
    }

    /// Places for the rows of surviving pages; absent where the chain has all rows.
    fn plan(
        &mut self,
        found: &Salvaged,
        targets: Targets,
        known: u64,
    ) -> Result<Option<Restore>, Errno> {
        let is_new = |past: &&Past| targets.is_in_place || past.generation() > known;
        let Some(past) = found.past.as_ref().filter(is_new) else {
            return Ok(None);
        };
        let tree = self.files.tree();
        let is_wanted = |inode: Inode, row: &InodeRow| {
            if targets.is_in_place {
                return Ok(true);
            }
            let now = tree.get(&inode_key(inode))?;
            let now = now.and_then(|now| InodeRow::decode(&now).ok());
            let time = |row: &InodeRow| (row.ctime.seconds, row.ctime.nanoseconds);
            Ok(now.is_none_or(|now| time(&now) < time(row)))
        };
        let to = (targets.root, targets.lost, FOLDER.as_bytes());
        let mut plan = Restore::read(found, past, to, &is_wanted)?;
        plan.give_places(past, &mut || self.take_home())?;
        Ok(Some(plan))
    }

    fn take_home(&mut self) -> Result<Home, Errno> {
        self.reserve_homes();
        self.files.numbers().take().ok_or(Errno::NoSpc)
    }

    /// Writers up to this number are those of a lost state.
    pub(crate) fn note_writer(&mut self, last: u16) -> Result<(), Errno> {
        if last > self.last_writer()? {
            let (key, value) = lost_writer(last);
            self.put_row(key, value);
        }
        Ok(())
    }
}
