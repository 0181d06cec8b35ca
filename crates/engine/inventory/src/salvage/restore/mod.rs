//! A past state as rows of a new tree. Inodes get new numbers, so that no number of a lost state meets a later number.
//! Files keep their names, facts and chunks; several files share a chunk again. Folders and files without an entry
//! go to the folder for lost files, and so do entries of a lost folder.

mod facts;
mod places;
mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

use vere_ports::files::{Errno, FileKind, Inode};

use self::facts::Facts;
pub use self::facts::IsWanted;
pub use self::rows::Restored;
use super::{Past, Salvaged};
use crate::collection::rows::RowChange;
use crate::rows::{
    EntryRow, Home, InodeRow, Key, ROOT_HOME, SLOT_MAX, decode_entry, decode_extents, encode_entry,
    entry_key, inode_of,
};

/// A folder of the new tree: the number, and the home of the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folder {
    /// The number.
    pub inode: Inode,
    /// The home.
    pub home: Home,
}

/// Gives unused homes.
pub type Homes<'a> = dyn FnMut() -> Result<Home, Errno> + 'a;

/// The place of everything.
#[derive(Debug)]
pub struct Restore {
    facts: Facts,
    owners: HashMap<Home, u64>,
    /// Where entries of a home go.
    homes: BTreeMap<Home, Folder>,
    /// Folders in each home, old or new.
    folders: HashMap<Home, u32>,
    /// The folder for lost files.
    lost: Folder,
    /// Entries of the folder for lost files.
    lost_entries: Vec<RowChange>,
    /// Folders in the place of lost folders.
    stand_ins: Vec<Folder>,
    count: Count,
}

/// The extent of a restoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Files and the like.
    pub files: usize,
    /// Folders.
    pub folders: usize,
    /// The part in the folder for lost files, without an entry or a folder above.
    pub lost: usize,
    /// Inodes without room in memory.
    pub left_out: usize,
}

/// Numbers for inodes, one home after another.
struct Numbers<'a, 'b> {
    homes: &'a mut Homes<'b>,
    at: (Home, u32),
}

impl Numbers<'_, '_> {
    fn next(&mut self) -> Result<Inode, Errno> {
        if self.at.1 == 0 || self.at.1 >= SLOT_MAX {
            self.at = ((self.homes)()?, 0);
        }
        self.at.1 = self.at.1.saturating_add(1);
        Ok(inode_of(self.at.0, self.at.1))
    }

    fn folder(&mut self) -> Result<Folder, Errno> {
        Ok(Folder {
            inode: self.next()?,
            home: (self.homes)()?,
        })
    }
}

impl Restore {
    /// Reads a past state. `target` takes the place of the root folder, `lost` is the folder for everything without a place, and `prefix`
    /// begins the folder's name.
    ///
    /// # Errors
    /// Failures to read rows of the new tree.
    pub fn read(
        found: &Salvaged,
        past: &Past,
        (target, lost, prefix): (Folder, Folder, &[u8]),
        is_wanted: &IsWanted<'_>,
    ) -> Result<Self, Errno> {
        let has_pack = |pack: u64| found.packs.contains_key(&pack);
        let facts = Facts::read(past, is_wanted, &has_pack, prefix)?;
        let mut plan = Self {
            owners: places::owners(&facts),
            facts,
            homes: BTreeMap::from([(ROOT_HOME, target)]),
            folders: HashMap::new(),
            lost,
            lost_entries: Vec::new(),
            stand_ins: Vec::new(),
            count: Count::default(),
        };
        plan.count.left_out = plan.facts.left_out;
        places::hang(&mut plan.facts, &plan.owners);
        plan.choose(past);
        Ok(plan)
    }

    /// Gives everything wanted a number and a place.
    ///
    /// # Errors
    /// The errors of `homes`.
    pub fn give_places(&mut self, past: &Past, homes: &mut Homes<'_>) -> Result<(), Errno> {
        let mut numbers = Numbers { homes, at: (0, 0) };
        self.number(&mut numbers)?;
        self.stand_in(past, &mut numbers)
    }

    /// The extent of a restoration.
    #[must_use]
    pub const fn count(&self) -> Count {
        self.count
    }

    /// Whether the past's root folder has a name with the prefix.
    pub fn has_root_name(&self, name: &[u8]) -> bool {
        self.facts.root_names.contains(name)
    }

    /// The name of a lost inode without a row.
    #[must_use]
    pub fn name_of(&self, inode: u64) -> Option<&[u8]> {
        self.facts.names.get(&inode).map(Vec::as_slice)
    }

    /// The row of the past's root folder.
    #[must_use]
    pub const fn root(&self) -> Option<&InodeRow> {
        self.facts.root.as_ref()
    }

    /// Folders in the folder for lost files.
    #[must_use]
    pub fn lost_folders(&self) -> u32 {
        self.folders_in(self.lost.home)
    }

    /// Whether the folder for lost files has entries.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        !self.lost_entries.is_empty()
    }

    /// Folders in the place of the root folder.
    #[must_use]
    pub fn root_folders(&self) -> u32 {
        self.folders_in(self.homes.get(&ROOT_HOME).map_or(0, |root| root.home))
    }

    fn folders_in(&self, home: Home) -> u32 {
        self.folders.get(&home).copied().unwrap_or(0)
    }

    /// Whether a chunk is no lost content: files that are put back have the chunk, or the past knows the pack and had no use for
    /// the chunk. The row of a pack may be older than the extents that need the pack: octets behind those of the file are new content,
    /// whose end is given.
    pub fn is_known(
        &self,
        past: &Past,
        known: &HashSet<(u64, u32)>,
        (pack, at): (u64, u32),
        (inode, end): (u64, u64),
    ) -> bool {
        if known.contains(&(pack, at)) {
            return true;
        }
        if !self.facts.packs.contains(&pack) {
            return false;
        }
        let Some(node) = self.facts.nodes.get(&inode) else {
            return past.is_whole();
        };
        // Where leaves are gone, only a file with all extents tells needless chunks.
        let has_all = node.new.is_some() && node.kind.is_some() && node.told >= node.size;
        end <= node.reach && (past.is_whole() || has_all)
    }

    /// Notes the chunks of all restored files.
    pub fn note_chunks(&self, past: &Past, known: &mut HashSet<(u64, u32)>) {
        past.visit(None, &mut |key, value| {
            if let Ok(Key::Extents { inode, offset }) = Key::decode(key)
                && self.number_of(inode).is_some()
                && let Ok(runs) = decode_extents(offset, value)
            {
                let extents = runs.iter().filter_map(|run| run.extent);
                known.extend(extents.map(|extent| (extent.pack.0, extent.at)));
            }
            ControlFlow::Continue(())
        });
    }

    fn number_of(&self, inode: Inode) -> Option<Inode> {
        self.facts.nodes.get(&inode.0)?.new
    }

    /// Marks the folders above everything wanted.
    fn choose(&mut self, past: &Past) {
        let (facts, owners) = (&mut self.facts, &self.owners);
        places::need(facts, owners, ROOT_HOME);
        past.visit(None, &mut |key, value| {
            if let (Ok(Key::Entry { home, .. }), Ok(entry)) =
                (Key::decode(key), decode_entry(value))
                && let Some(node) = facts.nodes.get_mut(&entry.inode.0)
            {
                // Content without a row is put back under the name.
                node.is_wanted |= node.kind.is_none() && node.told > 0;
                if node.is_wanted && (!node.is_folder() || node.above == Some(home)) {
                    places::need(facts, owners, home);
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// Gives new numbers. Folders and files without an entry get an entry in the folder for lost files.
    fn number(&mut self, numbers: &mut Numbers<'_, '_>) -> Result<(), Errno> {
        for (inode, node) in &mut self.facts.nodes {
            let is_folder = node.is_folder();
            let is_to_be = node.is_wanted || is_folder && node.is_needed;
            if !is_to_be || !node.has_facts() {
                continue;
            }
            if *inode == Inode::ROOT.0 {
                node.new = self.homes.get(&ROOT_HOME).map(|root| root.inode);
                continue;
            }
            let is_lost = match is_folder {
                true => node.above.is_none(),
                false => node.links == 0,
            };
            if is_lost && node.kind.is_none() {
                // Content without a name and a row is salvaged by chunks.
                continue;
            }
            let new = numbers.next()?;
            node.new = Some(new);
            if is_folder {
                self.count.folders = self.count.folders.saturating_add(1);
                let home = (numbers.homes)()?;
                self.homes.insert(node.home, Folder { inode: new, home });
            } else {
                self.count.files = self.count.files.saturating_add(1);
            }
            if is_lost {
                self.count.lost = self.count.lost.saturating_add(1);
                node.links = node.links.max(1);
                let entry = EntryRow {
                    inode: new,
                    kind: node.kind.unwrap_or(FileKind::File),
                };
                // Files by their chunks alone have another name there.
                let name = format!("restored-{inode:x}");
                let key = entry_key(self.lost.home, name.as_bytes());
                self.lost_entries.push((key, Some(encode_entry(entry))));
                if is_folder {
                    count_in(&mut self.folders, self.lost.home);
                }
            }
        }
        Ok(())
    }

    /// Gives the entries of lost folders new folders, and counts the folders in each home.
    fn stand_in(&mut self, past: &Past, numbers: &mut Numbers<'_, '_>) -> Result<(), Errno> {
        let mut failed = None;
        past.visit(None, &mut |key, value| {
            let (Ok(Key::Entry { home, .. }), Ok(entry)) = (Key::decode(key), decode_entry(value))
            else {
                return ControlFlow::Continue(());
            };
            if !self.is_put(home, entry.inode) {
                return ControlFlow::Continue(());
            }
            if !self.homes.contains_key(&home) {
                match numbers.folder() {
                    Ok(folder) => self.add_stand_in(home, folder),
                    Err(errno) => {
                        failed = Some(errno);
                        return ControlFlow::Break(());
                    }
                }
            }
            let node = self.facts.nodes.get(&entry.inode.0);
            if let (Some(folder), true) = (
                self.homes.get(&home),
                node.is_some_and(facts::Node::is_folder),
            ) {
                count_in(&mut self.folders, folder.home);
            }
            ControlFlow::Continue(())
        });
        failed.map_or(Ok(()), Err)
    }

    fn add_stand_in(&mut self, home: Home, folder: Folder) {
        self.homes.insert(home, folder);
        self.stand_ins.push(folder);
        self.count.folders = self.count.folders.saturating_add(1);
        self.count.lost = self.count.lost.saturating_add(1);
        let name = format!("folder-{home:x}");
        let key = entry_key(self.lost.home, name.as_bytes());
        let entry = EntryRow {
            inode: folder.inode,
            kind: FileKind::Folder,
        };
        self.lost_entries.push((key, Some(encode_entry(entry))));
        count_in(&mut self.folders, self.lost.home);
    }

    /// Whether an entry of the past is put back.
    fn is_put(&self, home: Home, inode: Inode) -> bool {
        let node = self.facts.nodes.get(&inode.0);
        node.is_some_and(|node| {
            let counts = !node.is_folder() || node.above == Some(home);
            node.new.is_some() && inode != Inode::ROOT && counts
        })
    }
}

fn count_in(folders: &mut HashMap<Home, u32>, home: Home) {
    let count = folders.entry(home).or_default();
    *count = count.saturating_add(1);
}
