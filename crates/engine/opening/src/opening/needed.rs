//! The pages that a volume begins with: rows of accounts and writers, and the rows of files changed by the journal. All further
//! pages are read when a program needs them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use vere_ports::files::Inode;
use vere_ports::storage::Storage;

use super::Opening;
use crate::format::Locator;
use crate::pages::Missing;
use crate::rows::{Key, extents_prefix, inode_key, unnamed_prefix, xattrs_prefix};
use vere_keep::record::Part;

/// The first octet of keys of the volume itself.
const VOLUME: u8 = 1;

impl<S: Storage> Opening<S> {
    /// Pages to be read before the volume begins, as far as known.
    pub(super) fn missing_pages(&self) -> Vec<Locator> {
        let mut missing = Vec::new();
        if self.is_distrusted {
            self.walk(&[], &mut missing, &mut |_| {});
            return missing;
        }
        self.walk(&[VOLUME], &mut missing, &mut |_| {});
        let mut inodes = self.changed_inodes();
        self.walk(
            &unnamed_prefix(self.last_writer()),
            &mut missing,
            &mut |key| {
                if let Ok(Key::Unnamed { inode, .. }) = Key::decode(key) {
                    inodes.insert(inode);
                }
            },
        );
        for inode in inodes {
            if let Err(Missing(at)) = self.pages.get(&inode_key(inode)) {
                missing.push(at);
            }
            for prefix in [xattrs_prefix(inode), extents_prefix(inode)] {
                self.walk(&prefix, &mut missing, &mut |_| {});
            }
        }
        missing.sort_unstable_by_key(|at| (at.mail, at.at));
        missing.dedup();
        missing
    }

    fn walk(&self, prefix: &[u8], missing: &mut Vec<Locator>, see: &mut dyn FnMut(&[u8])) {
        let walk = self
            .pages
            .visit_prefix::<Missing>(prefix, prefix, &mut |key, _| {
                see(key);
                Ok(ControlFlow::Continue(()))
            });
        missing.extend(walk.err().map(|Missing(at)| at));
    }

    /// The writer of this folder, if the journal knows one.
    pub(super) fn last_writer(&self) -> u16 {
        let parts = self.records.iter().rev().flat_map(|(_, parts)| parts);
        let mut writers = parts.filter_map(|part| match part {
            Part::Reserved { writer, .. } => Some(*writer),
            _ => None,
        });
        writers.next().unwrap_or(0)
    }

    /// Files with contents changed by the journal, and files that end when the volume begins.
    fn changed_inodes(&self) -> BTreeSet<Inode> {
        let mut inodes = BTreeSet::new();
        for part in self.records.iter().flat_map(|(_, parts)| parts) {
            match part {
                Part::Content(change) => {
                    inodes.insert(change.inode());
                }
                Part::Moved(_, Some(to)) => {
                    inodes.insert(*to);
                }
                Part::Row(change) => inodes.extend(ends(&change.key, change.value.is_none())),
                _ => {}
            }
        }
        let commits = self.commits.values().flatten();
        for row in commits.flat_map(|found| &found.record.rows) {
            inodes.extend(ends(&row.key, false));
        }
        inodes
    }
}

/// The inode of a row that ends a file when the volume begins.
fn ends(key: &[u8], is_removal: bool) -> Option<Inode> {
    match Key::decode(key) {
        Ok(Key::Unnamed { inode, .. }) => Some(inode),
        Ok(Key::Inode(inode)) if is_removal => Some(inode),
        _ => None,
    }
}
