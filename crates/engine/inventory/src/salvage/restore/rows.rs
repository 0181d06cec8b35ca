//! The rows of the new tree, made in turn: inodes first, then entries, so that every entry has an inode.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use vere_ports::files::{FileKind, Inode};

use super::Restore;
use crate::collection::rows::RowChange;
use crate::rows::{
    EntryRow, InodeRow, Key, decode_entry, encode_entry, entry_key, extents_key, inode_key,
    tree_prefix, xattr_key,
};
use crate::salvage::Salvaged;

/// Rows of the past read at once.
const SLICE: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Inodes,
    Entries,
    Over,
}

/// Rows of the new tree, in turn.
#[derive(Debug)]
pub struct Restored {
    found: Arc<Salvaged>,
    plan: Restore,
    stage: Stage,
    /// The last row read of the past.
    after: Option<Vec<u8>>,
    ready: VecDeque<RowChange>,
    last: VecDeque<RowChange>,
}

impl Restored {
    /// `blank` is the row of a file without a row, and `last` are the last rows.
    #[must_use]
    pub fn new(
        found: Arc<Salvaged>,
        mut plan: Restore,
        (blank, mut first): (&InodeRow, Vec<RowChange>),
        last: Vec<RowChange>,
    ) -> Self {
        first.append(&mut plan.facts.pack_rows);
        plan.blank_rows(blank, &mut first);
        let mut all = std::mem::take(&mut plan.lost_entries);
        all.extend(last);
        Self {
            found,
            plan,
            stage: Stage::Inodes,
            after: None,
            ready: first.into(),
            last: all.into(),
        }
    }

    /// The number of rows, about.
    #[must_use]
    pub fn rows(&self) -> usize {
        let own = self.ready.len().saturating_add(self.last.len());
        self.plan.facts.rows.saturating_add(own)
    }

    fn fill(&mut self) {
        let Some(past) = &self.found.past else {
            self.stage = Stage::Over;
            return;
        };
        let (plan, ready, stage) = (&self.plan, &mut self.ready, self.stage);
        let (mut seen, mut last) = (0_usize, None);
        past.visit(self.after.as_deref(), &mut |key, value| {
            if !key.starts_with(&tree_prefix()) {
                return ControlFlow::Break(());
            }
            ready.extend(match stage {
                Stage::Inodes => plan.inode_row(key, value),
                _ => plan.entry_row(key, value),
            });
            seen = seen.saturating_add(1);
            if seen < SLICE {
                return ControlFlow::Continue(());
            }
            last = Some(key.to_vec());
            ControlFlow::Break(())
        });
        if last.is_none() {
            self.stage = match self.stage {
                Stage::Inodes => Stage::Entries,
                _ => Stage::Over,
            };
        }
        self.after = last;
    }
}

impl Iterator for Restored {
    type Item = RowChange;

    fn next(&mut self) -> Option<RowChange> {
        loop {
            if let Some(row) = self.ready.pop_front() {
                return Some(row);
            }
            if self.stage == Stage::Over {
                return self.last.pop_front();
            }
            self.fill();
        }
    }
}

impl Restore {
    /// Rows of folders in the place of lost folders, and of files without a row.
    fn blank_rows(&self, blank: &InodeRow, rows: &mut Vec<RowChange>) {
        for folder in &self.stand_ins {
            let row = InodeRow {
                kind: FileKind::Folder,
                mode: blank.mode | (blank.mode & 0o444) >> 2,
                links: self.folders_in(folder.home).saturating_add(2),
                home_or_device: folder.home,
                parent: self.lost.inode.0,
                ..blank.clone()
            };
            rows.push((inode_key(folder.inode).to_vec(), Some(row.encode())));
        }
        for node in self.facts.nodes.values() {
            if let (Some(new), None) = (node.new, node.kind) {
                let row = InodeRow {
                    links: node.links,
                    size: node.reach,
                    ..blank.clone()
                };
                rows.push((inode_key(new).to_vec(), Some(row.encode())));
            }
        }
    }

    /// The row of an inode, or another row besides an entry.
    fn inode_row(&self, key: &[u8], value: &[u8]) -> Option<RowChange> {
        let key = match Key::decode(key).ok()? {
            Key::Inode(inode) if inode != Inode::ROOT => {
                let node = self.facts.nodes.get(&inode.0)?;
                let new = node.new?;
                let mut row = InodeRow::decode(value).ok()?;
                row.links = node.links;
                if row.is_folder() {
                    let home = self.homes.get(&node.home)?.home;
                    let above = node.above.and_then(|home| self.homes.get(&home));
                    row.links = self.folders_in(home).saturating_add(2);
                    row.home_or_device = home;
                    row.parent = above.unwrap_or(&self.lost).inode.0;
                }
                return Some((inode_key(new).to_vec(), Some(row.encode())));
            }
            Key::Xattr { inode, name } => xattr_key(self.number_of(inode)?, name),
            Key::Extents { inode, offset } => {
                let node = self.facts.nodes.get(&inode.0)?;
                let is_file = node.kind.is_none_or(|kind| kind == FileKind::File);
                let new = node.new.filter(|_| is_file)?;
                extents_key(new, offset).to_vec()
            }
            _ => return None,
        };
        Some((key, Some(value.to_vec())))
    }

    fn entry_row(&self, key: &[u8], value: &[u8]) -> Option<RowChange> {
        let Key::Entry { home, name } = Key::decode(key).ok()? else {
            return None;
        };
        let inode = decode_entry(value).ok()?.inode;
        if !self.is_put(home, inode) {
            return None;
        }
        let node = self.facts.nodes.get(&inode.0)?;
        let entry = EntryRow {
            inode: node.new?,
            kind: node.kind.unwrap_or(FileKind::File),
        };
        let key = entry_key(self.homes.get(&home)?.home, name);
        Some((key, Some(encode_entry(entry))))
    }
}
