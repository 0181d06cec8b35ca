//! Which files need a pack, and the paths of files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use vere_ports::files::{Errno, Inode};

use crate::format::PackNumber;
use crate::rows::{
    Extent, Home, InodeRow, Key, ROOT_HOME, Run, decode_entry, decode_extents, tree_prefix,
};
use crate::tree::Tree;

/// Folders above a file; a deeper path is cut off at its front.
const DEPTH_MAX: usize = 4_096;

/// Places of files that need some packs, by pack.
pub type Needs = BTreeMap<PackNumber, BTreeMap<Inode, u64>>;

/// Sees the extents of all files: the inode, the offset in the file, the piece and its chunk.
///
/// # Errors
/// Failures to read rows.
pub fn visit_extents(
    tree: &Tree,
    mut see: impl FnMut(Inode, u64, &Run, Extent),
) -> Result<(), Errno> {
    tree.visit(&tree_prefix(), None, &mut |key, value| {
        if let Ok(Key::Extents { inode, offset }) = Key::decode(key)
            && let Ok(runs) = decode_extents(offset, value)
        {
            let mut at = offset;
            for run in runs {
                if let Some(extent) = run.extent {
                    see(inode, at, &run, extent);
                }
                at = at.saturating_add(run.length);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// The files that need any of these packs, with the first offset.
///
/// # Errors
/// Failures to read rows.
pub fn needs(tree: &Tree, packs: &BTreeSet<PackNumber>) -> Result<Needs, Errno> {
    let mut needs = Needs::new();
    if packs.is_empty() {
        return Ok(needs);
    }
    visit_extents(tree, |inode, at, _, extent| {
        if packs.contains(&extent.pack) {
            let files = needs.entry(extent.pack).or_default();
            files.entry(inode).or_insert(at);
        }
    })?;
    Ok(needs)
}

/// Paths by inode.
#[derive(Debug, Default)]
pub struct Paths {
    names: HashMap<Inode, (Home, Vec<u8>)>,
    /// The folder of a home.
    folders: HashMap<Home, Inode>,
}

impl Paths {
    /// The paths of these inodes. A file of several names has the path of one of them.
    ///
    /// # Errors
    /// Failures to read rows.
    pub fn of(tree: &Tree, inodes: &HashSet<Inode>) -> Result<Self, Errno> {
        let mut paths = Self::default();
        if inodes.is_empty() {
            return Ok(paths);
        }
        tree.visit(&tree_prefix(), None, &mut |key, value| {
            match Key::decode(key) {
                Ok(Key::Entry { home, name }) => {
                    if let Ok(entry) = decode_entry(value)
                        && (entry.kind == vere_ports::files::FileKind::Folder
                            || inodes.contains(&entry.inode))
                    {
                        paths.names.insert(entry.inode, (home, name.to_vec()));
                    }
                }
                Ok(Key::Inode(inode)) => {
                    if let Ok(row) = InodeRow::decode(value)
                        && row.is_folder()
                    {
                        paths.folders.insert(row.home_or_device, inode);
                    }
                }
                _ => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(paths)
    }

    /// The path of an inode; its number where no entry names the inode.
    pub fn path(&self, inode: Inode) -> String {
        let mut names: Vec<String> = Vec::new();
        let mut at = inode;
        while let Some((home, name)) = self.names.get(&at)
            && names.len() < DEPTH_MAX
        {
            names.push(String::from_utf8_lossy(name).into_owned());
            if *home == ROOT_HOME {
                break;
            }
            match self.folders.get(home) {
                Some(folder) => at = *folder,
                None => break,
            }
        }
        if names.is_empty() {
            return format!("inode {}", inode.0);
        }
        names.reverse();
        format!("/{}", names.join("/"))
    }
}
