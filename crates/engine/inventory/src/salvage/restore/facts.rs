//! Facts about inodes by the rows of a past state.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use vere_ports::files::{Errno, FileKind, Inode};

use crate::collection::rows::RowChange;
use crate::rows::{
    Home, InodeRow, Key, PackRow, ROOT_HOME, RowValue, decode_entry, decode_extents,
};
use crate::salvage::Past;

/// Inodes to be put back: about 500 MB in memory. Further inodes are counted.
const INODES_MAX: usize = 4_000_000;
/// Remembered names of inodes without a row.
const NAMES_MAX: usize = 1_000_000;

/// An inode of the past.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    /// Absent without the inode's own row.
    pub(super) kind: Option<FileKind>,
    /// The home of a folder's entries.
    pub(super) home: Home,
    pub(super) parent: u64,
    pub(super) size: u64,
    /// Octets that the extents reach, holes among them.
    pub(super) reach: u64,
    /// The octets of all extents, holes among them.
    pub(super) told: u64,
    /// Entries.
    pub(super) links: u32,
    /// Whether the inode is to be put back.
    pub(super) is_wanted: bool,
    /// Whether a folder, or anything below, is to be put back.
    pub(super) is_needed: bool,
    /// The home of a folder's chosen entry.
    pub(super) above: Option<Home>,
    /// The number in the new tree.
    pub(super) new: Option<Inode>,
}

impl Node {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == Some(FileKind::Folder)
    }

    /// Whether there is anything to be put back besides a name.
    pub(super) fn has_facts(&self) -> bool {
        self.kind.is_some() || self.told > 0
    }
}

/// The caller's knowledge about the new tree.
pub type IsWanted<'a> = dyn Fn(Inode, &InodeRow) -> Result<bool, Errno> + 'a;

/// All facts for the new tree.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) nodes: BTreeMap<u64, Node>,
    /// Folders with the homes of entries: several where rows are of different times.
    pub(super) folders: BTreeMap<u64, Vec<Home>>,
    /// Names of inodes without a row.
    pub(super) names: HashMap<u64, Vec<u8>>,
    /// Names in the root folder with the prefix of the folder for lost files.
    pub(super) root_names: BTreeSet<Vec<u8>>,
    /// Packs of content with a row in the past.
    pub(super) packs: HashSet<u64>,
    /// Rows of needed packs whose mails were not found.
    pub(super) pack_rows: Vec<RowChange>,
    needed: HashSet<u64>,
    /// The root folder's own row.
    pub(super) root: Option<InodeRow>,
    /// Rows of files.
    pub(super) rows: usize,
    /// Inodes that have no room.
    pub(super) left_out: usize,
    errno: Option<Errno>,
}

impl Facts {
    /// Reads all rows. `has_pack` tells packs with a mail; `prefix` begins the name of the folder for lost files.
    pub(super) fn read(
        past: &Past,
        is_wanted: &IsWanted<'_>,
        has_pack: &dyn Fn(u64) -> bool,
        prefix: &[u8],
    ) -> Result<Self, Errno> {
        let mut facts = Self::default();
        past.visit(None, &mut |key, value| {
            // A wrong row is no reason to lose further rows.
            if let Ok(key) = Key::decode(key) {
                facts.row(key, value, (is_wanted, has_pack), prefix);
            }
            match facts.errno {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        if let Some(errno) = facts.errno {
            return Err(errno);
        }
        facts.needed = HashSet::new();
        // The root folder is there in any case.
        let root = facts.nodes.entry(Inode::ROOT.0).or_default();
        root.kind = Some(FileKind::Folder);
        root.home = ROOT_HOME;
        Ok(facts)
    }

    fn row(
        &mut self,
        key: Key<'_>,
        value: &[u8],
        (is_wanted, has_pack): (&IsWanted<'_>, &dyn Fn(u64) -> bool),
        prefix: &[u8],
    ) {
        self.rows = self.rows.saturating_add(1);
        match key {
            Key::Entry { home, name } => {
                if home == ROOT_HOME && name.starts_with(prefix) {
                    self.root_names.insert(name.to_vec());
                }
                self.entry(home, name, value);
            }
            Key::Inode(inode) => {
                let Ok(row) = InodeRow::decode(value) else {
                    return;
                };
                match is_wanted(inode, &row) {
                    Ok(is_wanted) => self.inode(inode, &row, is_wanted),
                    Err(errno) => self.errno = Some(errno),
                }
            }
            Key::Extents { inode, offset } => self.extents(inode, offset, value),
            Key::Pack(pack) => {
                let Ok(row) = PackRow::decode(value) else {
                    return;
                };
                if crate::collection::collect::has_content(row.kind) {
                    self.packs.insert(pack);
                }
                if self.needed.contains(&pack) && !has_pack(pack) {
                    // The mail may be on an absent account.
                    let key = Key::Pack(pack).encode();
                    self.pack_rows.push((key, Some(value.to_vec())));
                }
            }
            _ => {}
        }
    }

    fn node(&mut self, inode: Inode) -> Option<&mut Node> {
        if self.nodes.len() >= INODES_MAX && !self.nodes.contains_key(&inode.0) {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        Some(self.nodes.entry(inode.0).or_default())
    }

    fn entry(&mut self, home: Home, name: &[u8], value: &[u8]) {
        let Ok(entry) = decode_entry(value) else {
            return;
        };
        let Some(node) = self.node(entry.inode) else {
            return;
        };
        node.links = node.links.saturating_add(1);
        let has_row = node.kind.is_some();
        if entry.kind == FileKind::Folder {
            let homes = self.folders.entry(entry.inode.0).or_default();
            homes.push(home);
        } else if !has_row && self.names.len() < NAMES_MAX {
            self.names.insert(entry.inode.0, name.to_vec());
        }
    }

    fn inode(&mut self, inode: Inode, row: &InodeRow, is_wanted: bool) {
        self.names.remove(&inode.0);
        if inode == Inode::ROOT {
            self.root = Some(row.clone());
        }
        if let Some(node) = self.node(inode) {
            node.kind = Some(row.kind);
            node.parent = row.parent;
            node.size = row.size;
            node.is_wanted = is_wanted;
            if row.is_folder() {
                node.home = row.home_or_device;
            }
        }
    }

    fn extents(&mut self, inode: Inode, offset: u64, value: &[u8]) {
        let Ok(runs) = decode_extents(offset, value) else {
            return;
        };
        let mut told = 0_u64;
        for run in &runs {
            told = told.saturating_add(run.length);
            self.needed.extend(run.extent.map(|extent| extent.pack.0));
        }
        if let Some(node) = self.node(inode) {
            node.told = node.told.saturating_add(told);
            node.reach = node.reach.max(offset.saturating_add(told));
        }
    }
}
