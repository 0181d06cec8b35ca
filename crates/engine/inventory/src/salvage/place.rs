//! The folders that a salvage fills, and the rows around the restored ones.

use std::ops::ControlFlow;

use vere_ports::files::{Caller, Errno, FileKind, FileTime, Inode};

use super::found::Salvaged;
use super::lost::new_file;
use super::mark::{begun, lost_writer};
use super::restore::{Count, Folder, Restore};
use crate::collection::rows::RowChange;
use crate::rows::{
    EntryRow, InodeRow, Key, ROOT_HOME, RowValue, encode_entry, entry_key, inode_key,
    writers_prefix,
};
use crate::tree::Tree;

/// The folder, as fsck names the like.
pub const FOLDER: &str = "lost+found";
/// The folder there for a past tree, where the root folder has entries.
const TREE: &str = "tree";
/// Folders of earlier salvages before somebody has to look.
const FOLDERS_MAX: usize = 1_000;
/// Permissions of the folder: the owners may be unknown.
const FOLDER_MODE: u16 = 0o700;

type Rows = Vec<RowChange>;

/// The effect of a salvage on a tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placed {
    /// The folder in the root folder.
    pub folder: String,
    /// Files by their chunks alone, in the folder.
    pub files: usize,
    /// Octets of these outside holes.
    pub octets: u64,
    /// Files and folders by surviving pages.
    pub restored: Count,
    /// Whether everything restored is in the former place. Else the tree had entries, and everything missing
    /// is in a folder apart.
    pub is_in_place: bool,
}

impl Placed {
    /// Whether rows are on the way into commits.
    #[must_use]
    pub const fn has_any(&self) -> bool {
        self.files > 0 || self.restored.files > 0 || self.restored.folders > 0
    }
}

/// The folders that a salvage fills.
#[derive(Debug, Clone, Copy)]
pub struct Targets {
    /// The folder for lost files.
    pub lost: Folder,
    /// The folder in the place of the past's root folder.
    pub root: Folder,
    /// Whether the past's root folder goes to its own place.
    pub is_in_place: bool,
}

/// Rows of packs that the tree does not know.
///
/// # Errors
/// Failures to read rows.
pub fn pack_rows(tree: &Tree, found: &Salvaged) -> Result<Rows, Errno> {
    let mut rows = Rows::new();
    for (number, row) in &found.packs {
        let key = Key::Pack(*number).encode();
        if tree.get(&key)?.is_none() {
            rows.push((key, Some(row.encode())));
        }
    }
    Ok(rows)
}

/// Rows that tell the end of a salvage: those of the lost writers whose salvage has begun.
///
/// # Errors
/// Failures to read rows.
pub fn salvage_ends(tree: &Tree) -> Result<Rows, Errno> {
    let mut ends = Rows::new();
    tree.visit(&writers_prefix(), None, &mut |key, value| {
        if let (Ok(Key::Writer(number)), Some(Some(_))) = (Key::decode(key), begun(value)) {
            let (key, value) = lost_writer(number);
            ends.push((key, Some(value)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ends)
}

/// A name that neither the root folder nor that of the past has.
///
/// # Errors
/// Failures to read rows, and EEXIST beyond 1,000 such folders.
pub fn free_name(tree: &Tree, plan: Option<&Restore>) -> Result<String, Errno> {
    for number in 1..=FOLDERS_MAX {
        let name = match number {
            1 => FOLDER.to_owned(),
            _ => format!("{FOLDER}-{number}"),
        };
        let key = entry_key(ROOT_HOME, name.as_bytes());
        let is_past = plan.is_some_and(|plan| plan.has_root_name(name.as_bytes()));
        if !is_past && tree.get(&key)?.is_none() {
            return Ok(name);
        }
    }
    Err(Errno::Exist)
}

/// The folder for lost files, that in the place of the past's root folder, and the root folder, with their entries.
///
/// # Errors
/// Failures to read the row of the root folder.
pub fn folder_rows(
    tree: &Tree,
    (plan, targets): (Option<&Restore>, Targets),
    (owner, now): (Caller, FileTime),
    placed: &Placed,
    rows: &mut Rows,
) -> Result<(), Errno> {
    let count = placed.restored;
    let has_apart = !targets.is_in_place && (count.files > 0 || count.folders > 0);
    let has_lost = has_apart || placed.files > 0 || plan.is_some_and(|plan| plan.has_lost());
    let blank = InodeRow {
        kind: FileKind::Folder,
        mode: FOLDER_MODE,
        ..new_file((owner, now))
    };
    let links = |folders: u32| folders.saturating_add(2);
    let past = |default: InodeRow| plan.and_then(Restore::root).cloned().unwrap_or(default);
    let folders = plan.map_or(0, Restore::root_folders);
    if has_lost {
        let own = InodeRow {
            links: links(plan.map_or(0, Restore::lost_folders))
                .saturating_add(u32::from(has_apart)),
            home_or_device: targets.lost.home,
            parent: Inode::ROOT.0,
            ..blank.clone()
        };
        rows.push((inode_key(targets.lost.inode).to_vec(), Some(own.encode())));
        let key = entry_key(ROOT_HOME, placed.folder.as_bytes());
        rows.push((key, Some(folder_entry(targets.lost.inode))));
    }
    if has_apart {
        let own = InodeRow {
            links: links(folders),
            home_or_device: targets.root.home,
            parent: targets.lost.inode.0,
            ..past(blank)
        };
        rows.push((inode_key(targets.root.inode).to_vec(), Some(own.encode())));
        let key = entry_key(targets.lost.home, TREE.as_bytes());
        rows.push((key, Some(folder_entry(targets.root.inode))));
    }
    let key = inode_key(Inode::ROOT).to_vec();
    let root = tree.get(&key)?.ok_or(Errno::Io)?;
    let root = InodeRow::decode(&root).map_err(|_| Errno::Io)?;
    let mut root = match (plan, targets.is_in_place) {
        (Some(_), true) => InodeRow {
            links: links(folders),
            home_or_device: ROOT_HOME,
            parent: Inode::ROOT.0,
            ..past(root)
        },
        _ => root,
    };
    root.links = root.links.saturating_add(u32::from(has_lost));
    root.mtime = now;
    root.ctime = now;
    rows.push((key, Some(root.encode())));
    Ok(())
}

fn folder_entry(inode: Inode) -> Vec<u8> {
    encode_entry(EntryRow {
        inode,
        kind: FileKind::Folder,
    })
}
