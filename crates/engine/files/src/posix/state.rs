//! The state of a mounted tree.

use std::collections::{BTreeMap, HashMap};

use vere_ports::files::{FileTime, Handle, Inode, OpenFlags, Statistics};

use super::damage::Damage;
use super::lookups::Lookups;
use super::numbers::Numbers;
use super::outcome::ContentChange;
use crate::content::{Content, Unsent};
use crate::rows::{Home, InodeRow, ROOT_HOME};
use crate::tree::Tree;

/// The rows of a volume, contents of files, open files and look-ups.
#[derive(Debug)]
pub struct Files {
    pub(super) tree: Tree,
    pub(super) unsent: Unsent,
    pub(super) numbers: Numbers,
    /// Where this session's next inode of a folder goes: the home, and the last slot in use.
    pub(super) homes: HashMap<Inode, (Home, u32)>,
    pub(super) lookups: Lookups,
    /// The root folder, and the folders among [`Files::lookups`], by their homes.
    pub(super) folders: HashMap<Home, Inode>,
    pub(super) opens: HashMap<Inode, u32>,
    /// Contents of open files and of files with unsent octets.
    pub(super) contents: HashMap<Inode, Content>,
    pub(super) dirty: HashMap<Inode, Dirty>,
    /// Inodes with unsent octets by [`Dirty::order`].
    pub(super) dirty_order: BTreeMap<u64, Inode>,
    pub(super) dirty_next: u64,
    /// Inodes without a name and without rows that the kernel still knows.
    pub(super) ghosts: HashMap<Inode, InodeRow>,
    /// Times of access that no row has yet.
    pub(super) atimes: BTreeMap<Inode, FileTime>,
    pub(super) handles: HashMap<Handle, Open>,
    pub(super) next_handle: u64,
    pub(super) room: Statistics,
    pub(super) content_changes: Vec<ContentChange>,
    pub(super) damage: Vec<Damage>,
}

/// A file with unsent octets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dirty {
    /// Rises from file to file.
    pub(super) order: u64,
    /// The first unsent write.
    pub(super) since: FileTime,
    /// The size that belongs to the rows of extents.
    pub(super) stored_size: u64,
}

/// An open file or folder.
#[derive(Debug)]
pub(super) enum Open {
    File {
        inode: Inode,
        flags: OpenFlags,
    },
    Folder {
        inode: Inode,
        /// Names that were listed, in order. The position of a name makes the name's cursor, so that cursors survive removals.
        names: Vec<Box<[u8]>>,
    },
}

impl Files {
    /// The state over the rows of a volume.
    #[must_use]
    pub fn new(tree: Tree, numbers: Numbers) -> Self {
        Self {
            tree,
            unsent: Unsent::default(),
            numbers,
            homes: HashMap::new(),
            lookups: Lookups::default(),
            folders: HashMap::from([(ROOT_HOME, Inode::ROOT)]),
            opens: HashMap::new(),
            contents: HashMap::new(),
            dirty: HashMap::new(),
            dirty_order: BTreeMap::new(),
            dirty_next: 0,
            ghosts: HashMap::new(),
            atimes: BTreeMap::new(),
            handles: HashMap::new(),
            next_handle: 1,
            room: Statistics::default(),
            content_changes: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The rows.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The rows, to take changes and to write rows of the volume. Rows of inodes and contents go through
    /// [`Files::apply`].
    pub fn tree_mut(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// The homes of this writer.
    pub fn numbers(&mut self) -> &mut Numbers {
        &mut self.numbers
    }

    /// The unsent octets.
    #[must_use]
    pub fn unsent(&self) -> &Unsent {
        &self.unsent
    }

    /// The unsent octets, to take octets out of memory.
    pub fn unsent_mut(&mut self) -> &mut Unsent {
        &mut self.unsent
    }

    /// Sets the reply to `Statistics`.
    pub fn set_room(&mut self, room: Statistics) {
        self.room = room;
    }

    /// The changes of content since the last take that no row tells, in order.
    pub fn take_content_changes(&mut self) -> Vec<ContentChange> {
        std::mem::take(&mut self.content_changes)
    }

    /// The wrong rows that calls have met since the last take.
    pub fn take_damage(&mut self) -> Vec<Damage> {
        std::mem::take(&mut self.damage)
    }
}
