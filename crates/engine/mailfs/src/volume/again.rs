//! Content of lost packs is sent again while mounted: the journal has the octets, which count as written once more. Rows with
//! the name of a lost pack go back to the values in the chain, so no commit names the pack.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use vere_keep::regain::{Wanted, regain};
use vere_ports::files::{Errno, Inode};
use vere_ports::storage::Storage;

use super::record::Part;
use super::state::Volume;
use super::step::{Notice, Step};
use crate::content::Source;
use crate::rows::{Extent, InodeRow, Key, extents_prefix, inode_key};
use crate::tree::Change;

/// A piece of a file in a lost pack.
struct Lost {
    inode: Inode,
    offset: u64,
    length: u32,
    extent: Extent,
    skip: u32,
}

impl<S: Storage> Volume<S> {
    /// Files with content in some of these packs. Rows for later steps are read along.
    pub(super) fn files_in(&self, packs: &BTreeSet<u64>) -> Result<BTreeSet<Inode>, Errno> {
        let mut files: BTreeSet<Inode> = self.files.dirty_inodes().collect();
        let tree = self.files.tree();
        for key in tree.local_keys() {
            if let (Ok(Key::Extents { inode, .. }), Some(value)) =
                (Key::decode(key), tree.get(key)?)
            {
                let named = vere_inventory::collection::scan::packs_of(key, &value);
                if named.iter().any(|pack| packs.contains(&pack.0)) {
                    files.insert(inode);
                }
            }
        }
        for inode in &files {
            tree.in_chain(&inode_key(*inode))?;
            tree.keys(&extents_prefix(*inode))?;
        }
        for key in tree.local_keys() {
            tree.in_chain(key)?;
        }
        Ok(files)
    }

    /// Has the content of lost packs sent again. Returns whether the journal has all of it; nothing has changed otherwise.
    pub(super) fn send_again(&mut self, packs: &BTreeSet<u64>) -> Result<bool, Errno> {
        let mut lost = Vec::new();
        for inode in self.files_in(packs)? {
            if self.files.begin_replay(inode)?.is_none() {
                continue;
            }
            for (offset, piece) in self.files.pieces(inode) {
                if let Source::Chunk { extent, skip } = piece.source
                    && packs.contains(&extent.pack.0)
                {
                    let length = piece.length;
                    lost.push(Lost {
                        inode,
                        offset,
                        length,
                        extent,
                        skip,
                    });
                }
            }
        }
        let octets = lost.iter().map(|lost| u64::from(lost.length));
        if octets.fold(0, u64::saturating_add) > self.terms.unsent_max {
            return Ok(false);
        }
        let wanted = lost.iter();
        let mut wanted: Vec<Wanted> = wanted
            .map(|lost| Wanted::new(lost.inode, lost.offset, lost.length))
            .collect();
        let Ok(since) = regain(&self.journal, &mut wanted) else {
            return Ok(false);
        };
        let Some(found) = whole(&lost, wanted) else {
            return Ok(false);
        };
        let files: BTreeSet<Inode> = lost.iter().map(|lost| lost.inode).collect();
        for (lost, data) in lost.iter().zip(found) {
            let stored = self.stored_size(lost.inode)?;
            let of = (lost.offset, data);
            let change = self
                .files
                .write_again(lost.inode, of, stored, self.now.wall)?;
            self.journal
                .append(&[Part::Content(change)])
                .map_err(|_| Errno::Io)?;
        }
        for inode in &files {
            let from = since.of(*inode);
            let known = self.commits.changed.get(inode).copied();
            let from = known.map_or(from, |known| known.min(from));
            self.commits.changed.insert(*inode, from);
        }
        self.commits.since.get_or_insert(self.now.steady);
        self.forget_packs(packs, &files)?;
        if !files.is_empty() {
            let notice = Notice::SentAgain(files.len());
            self.steps.push_back(Step::Log(notice));
        }
        Ok(true)
    }

    /// The size that the chain has of a file.
    fn stored_size(&self, inode: Inode) -> Result<u64, Errno> {
        let row = self.files.tree().in_chain(&inode_key(inode))?;
        let row = row.and_then(|row| InodeRow::decode(&row).ok());
        Ok(row.map_or(0, |row| row.size))
    }

    /// Nothing names these packs any more, on the way or in rows.
    fn forget_packs(
        &mut self,
        packs: &BTreeSet<u64>,
        files: &BTreeSet<Inode>,
    ) -> Result<(), Errno> {
        self.fates.forget(packs);
        self.uploads.placed.retain(|pack| !packs.contains(pack));
        for want in &mut self.commits.wants {
            // The content is cut anew, lost octets included.
            want.snapshots = None;
            want.packs.clear();
        }
        let tree = self.files.tree();
        let is_void = |key: &&[u8]| match Key::decode(key) {
            Ok(Key::Extents { inode, .. }) => files.contains(&inode),
            Ok(Key::Pack(pack)) => packs.contains(&pack),
            _ => false,
        };
        let keys: Vec<Vec<u8>> = tree.local_keys().filter(is_void).map(Vec::from).collect();
        for key in keys {
            let value = self.files.tree().in_chain(&key)?.map(Vec::from);
            self.files.change(Change { key, value })?;
        }
        Ok(())
    }
}

/// The octets of all pieces. A copied piece has the octets of the written one.
fn whole(lost: &[Lost], wanted: Vec<Wanted>) -> Option<Vec<Bytes>> {
    let octets: Vec<Option<Bytes>> = wanted.into_iter().map(Wanted::octets).collect();
    let mut known: HashMap<Extent, Vec<(u32, Bytes)>> = HashMap::new();
    for (lost, octets) in lost.iter().zip(&octets) {
        if let Some(octets) = octets {
            let of = known.entry(lost.extent).or_default();
            of.push((lost.skip, octets.clone()));
        }
    }
    let copied = |lost: &Lost| {
        known.get(&lost.extent)?.iter().find_map(|(skip, octets)| {
            let from = usize::try_from(lost.skip.checked_sub(*skip)?).ok()?;
            let length = usize::try_from(lost.length).ok()?;
            let until = from.checked_add(length)?;
            (until <= octets.len()).then(|| octets.slice(from..until))
        })
    };
    let all = lost.iter().zip(octets);
    all.map(|(lost, octets)| octets.or_else(|| copied(lost)))
        .collect()
}
