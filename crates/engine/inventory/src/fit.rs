//! Whether the rows of the tree fit together.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hashbrown::HashSet;
use vere_ports::files::{Errno, FileKind, Inode};

use super::finding::{CheckReport, Finding};
use crate::rows::{
    Home, InodeRow, Key, PackRow, RowValue, TombstoneRow, WriterRow, decode_entry, decode_extents,
};
use crate::tree::Tree;

/// Octets before the sealed ones of a frame.
const FRAME_LENGTH: u64 = 4;

/// What entries say about an inode.
#[derive(Debug, Default, Clone, Copy)]
struct Named {
    entries: u32,
    kind: Option<FileKind>,
    /// The home of an entry.
    home: Home,
}

/// The tree as read so far.
#[derive(Debug, Default)]
struct Facts {
    inodes: HashMap<Inode, (FileKind, u32, Home, u64)>,
    named: HashMap<Inode, Named>,
    /// Folders among the entries of a home.
    folders: HashMap<Home, u32>,
    unnamed: HashSet<Inode>,
    packs: HashMap<u64, u32>,
    /// Inodes that extents and attributes belong to.
    owners: HashMap<Inode, bool>,
    /// Packs with the highest end that an extent needs, and a file that does.
    ends: HashMap<u64, (u64, Inode)>,
    /// Where the last extents of a file ended.
    last_extents: Option<(Inode, u64)>,
}

/// Reads all rows, and reports every row that does not fit.
///
/// # Errors
/// Failures to read rows.
pub fn check_tree(tree: &Tree, report: &mut CheckReport) -> Result<(), Errno> {
    let mut facts = Facts::default();
    tree.visit(&[], None, &mut |key, value| {
        if let Err(reason) = facts.row(key, value) {
            let name = format!("row {}", hexadecimal(key));
            report.add(Finding::Tree { name, reason });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    report.inodes = facts.inodes.len();
    report.packs = facts.packs.len();
    let mut found = facts.compare();
    found.sort();
    for finding in found {
        report.add(finding);
    }
    Ok(())
}

impl Facts {
    fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let text = |error: crate::rows::RowError| error.to_string();
        match Key::decode(key).map_err(text)? {
            Key::Entry { home, .. } => {
                let entry = decode_entry(value).map_err(text)?;
                let named = self.named.entry(entry.inode).or_default();
                named.entries = named.entries.saturating_add(1);
                named.kind = Some(entry.kind);
                named.home = home;
                if entry.kind == FileKind::Folder {
                    let folders = self.folders.entry(home).or_default();
                    *folders = folders.saturating_add(1);
                }
            }
            Key::Inode(inode) => {
                let row = InodeRow::decode(value).map_err(text)?;
                let facts = (row.kind, row.links, row.home_or_device, row.parent);
                self.inodes.insert(inode, facts);
            }
            Key::Xattr { inode, .. } => {
                self.owners.entry(inode).or_insert(false);
            }
            Key::Extents { inode, offset } => return self.extents(inode, offset, value),
            Key::Pack(pack) => {
                let row = PackRow::decode(value).map_err(text)?;
                self.packs.insert(pack, row.octets);
            }
            Key::Unnamed { inode, .. } => {
                self.unnamed.insert(inode);
            }
            Key::Tombstone(_) => {
                TombstoneRow::decode(value).map_err(text)?;
            }
            Key::Writer(_) => {
                WriterRow::decode(value).map_err(text)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn extents(&mut self, inode: Inode, offset: u64, value: &[u8]) -> Result<(), String> {
        let runs = decode_extents(offset, value).map_err(|error| error.to_string())?;
        self.owners.insert(inode, true);
        let mut at = offset;
        for run in runs {
            at = at.saturating_add(run.length);
            if let Some(extent) = run.extent {
                let length = u64::from(extent.sealed_len).saturating_add(FRAME_LENGTH);
                let end = u64::from(extent.at).saturating_add(length);
                let highest = self.ends.entry(extent.pack.0).or_insert((end, inode));
                if end > highest.0 {
                    *highest = (end, inode);
                }
            }
        }
        let before = self.last_extents.replace((inode, at));
        match before {
            Some((of, end)) if of == inode && end > offset => Err(format!(
                "expected extents from {end} on; found extents from {offset} on"
            )),
            _ => Ok(()),
        }
    }

    fn compare(&self) -> Vec<Finding> {
        let mut reasons = self.compare_inodes();
        let is_row = |inode: &Inode| self.inodes.contains_key(inode);
        for inode in self.named.keys().filter(|inode| !is_row(inode)) {
            reasons.push((
                *inode,
                "expected the inode of an entry; found no row".to_owned(),
            ));
        }
        for (inode, has_content) in &self.owners {
            let reason = match self.inodes.get(inode) {
                None => "content or attributes without an inode",
                Some((kind, ..)) if *has_content && *kind != FileKind::File => {
                    "content of an inode that is no file"
                }
                Some(_) => continue,
            };
            reasons.push((*inode, reason.to_owned()));
        }
        let found = reasons.into_iter().map(|(inode, reason)| {
            let name = format!("inode {}", inode.0);
            Finding::Tree { name, reason }
        });
        found.chain(self.compare_packs()).collect()
    }

    fn compare_inodes(&self) -> Vec<(Inode, String)> {
        let mut found = Vec::new();
        for (inode, (kind, links, home, parent)) in &self.inodes {
            let named = self.named.get(inode).copied().unwrap_or_default();
            let is_root = *inode == Inode::ROOT;
            let is_folder = *kind == FileKind::Folder;
            let folders = self.folders.get(home).copied().unwrap_or(0);
            let expected = match is_folder && (is_root || named.entries > 0) {
                true => folders.saturating_add(2),
                false => named.entries,
            };
            if *links != expected {
                found.push((*inode, format!("expected {expected} links; found {links}")));
            }
            if named.kind.is_some_and(|of| of != *kind) {
                found.push((*inode, "an entry tells another type".to_owned()));
            }
            if named.entries == 0 && !is_root && !self.unnamed.contains(inode) {
                found.push((*inode, "expected an entry; found none".to_owned()));
            }
            let above = self
                .inodes
                .get(&Inode(*parent))
                .map(|(_, _, home, _)| *home);
            if is_folder && named.entries > 0 && above != Some(named.home) {
                found.push((*inode, "the parent lacks the folder's entry".to_owned()));
            }
        }
        found
    }

    fn compare_packs(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (pack, (end, inode)) in &self.ends {
            let (pack, inode) = (*pack, inode.0);
            let reason = match self.packs.get(&pack) {
                None => format!("inode {inode} needs the pack; found no row"),
                Some(octets) if u64::from(*octets) < *end => {
                    format!("inode {inode} needs {end} octets; found {octets}")
                }
                Some(_) => continue,
            };
            found.push(Finding::Pack { pack, reason });
        }
        found
    }
}

fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}
