//! What every tree of rows must be.

use super::*;
use crate::rows::{InodeRow, Key, decode_entry};
use crate::tree::Tree;

/// Every entry has an inode, every inode a name or an open file, and links and parents are right.
pub(super) fn check(tree: &Tree) -> Result<(), String> {
    let mut inodes: BTreeMap<Inode, InodeRow> = BTreeMap::new();
    let mut entries = Vec::new();
    let mut unnamed = Vec::new();
    let mut belongs = Vec::new();
    for key in tree.keys(&[]).unwrap() {
        let value = &tree.get(&key).unwrap().unwrap()[..];
        match Key::decode(&key).unwrap() {
            Key::Inode(inode) => {
                inodes.insert(inode, InodeRow::decode(value).unwrap());
            }
            Key::Entry { home, name } => {
                entries.push((home, name.to_vec(), decode_entry(value).unwrap()));
            }
            Key::Unnamed { inode, .. } => unnamed.push(inode),
            Key::Extents { inode, .. } | Key::Xattr { inode, .. } => belongs.push(inode),
            _ => {}
        }
    }
    let folders: BTreeMap<u64, Inode> = inodes
        .iter()
        .filter(|(_, row)| row.is_folder())
        .map(|(inode, row)| (row.home_or_device, *inode))
        .collect();
    let mut links: BTreeMap<Inode, u32> = BTreeMap::new();
    for (home, name, entry) in &entries {
        let name = String::from_utf8_lossy(name);
        let Some(row) = inodes.get(&entry.inode) else {
            return Err(format!("{name}: no inode {:?}", entry.inode));
        };
        let Some(folder) = folders.get(home) else {
            return Err(format!("{name}: no folder of home {home}"));
        };
        if row.kind != entry.kind {
            return Err(format!("{name}: kinds differ"));
        }
        *links.entry(entry.inode).or_default() += 1;
        if row.is_folder() {
            *links.entry(*folder).or_default() += 1;
            if row.parent != folder.0 {
                return Err(format!("{name}: parent {} is not {folder:?}", row.parent));
            }
        }
    }
    for (inode, row) in &inodes {
        let counted = links.get(inode).copied().unwrap_or(0);
        let expected = match row.is_folder() {
            true => counted + 1 + u32::from(*inode == Inode::ROOT),
            false => counted,
        };
        if row.links != expected {
            return Err(format!("{inode:?}: {} links, not {expected}", row.links));
        }
        let is_named = counted > 0 || *inode == Inode::ROOT || unnamed.contains(inode);
        if !is_named {
            return Err(format!("{inode:?}: no name"));
        }
    }
    match belongs.iter().find(|inode| !inodes.contains_key(*inode)) {
        Some(inode) => Err(format!("{inode:?}: rows without an inode")),
        None => Ok(()),
    }
}

/// Rows of files and folders.
pub(super) type FileRows = BTreeMap<Vec<u8>, Bytes>;

pub(super) fn rows_of(tree: &Tree) -> FileRows {
    let keys = tree.keys(&[2]).unwrap().into_iter();
    keys.map(|key| {
        let value = tree.get(&key).unwrap().unwrap();
        (key, value)
    })
    .collect()
}

/// The keys of rows that are not equal.
pub(super) fn differences(one: &FileRows, other: &FileRows) -> Vec<String> {
    let all: std::collections::BTreeSet<&Vec<u8>> = one.keys().chain(other.keys()).collect();
    let differ = all
        .into_iter()
        .filter(|key| one.get(*key) != other.get(*key));
    differ
        .map(|key| format!("{:?}", Key::decode(key)))
        .collect()
}
