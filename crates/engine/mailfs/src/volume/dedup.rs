//! Chunks of the volume are not sent again: files name the stored frame.
//!
//! A table on the local disk has hints to the chunks of this machine's writes and reads. A hint counts only while the volume's
//! rows have the pack and no tombstone for the pack. A later tombstone does no harm: a collection looks at the needs of files
//! again before the removal of a pack.

use super::job::{Job, PackJob, Task};
use super::local::{CacheTerms, Local};
use super::packs::{Fate, FateRange};
use super::state::uploads::Cut;
use super::state::{Volume, Working};
use crate::format::{ChunkId, PackNumber};
use crate::rows::{Extent, Key};
use std::collections::BTreeSet;
use vere_ports::files::Inode;
use vere_ports::storage::Storage;

/// Octets of a chunk for which a search pays: a frame elsewhere costs a later reader a request.
pub(super) const SHARED_MIN: usize = 1 << 10;

impl<S: Storage> Volume<S> {
    /// Has the mount use a folder for hints and chunks. Both survive the mount; no other mount may use the folder.
    pub fn use_cache(&mut self, storage: &S, terms: CacheTerms) {
        self.local = Local::open(storage, terms, self.now.steady);
    }

    /// The chunks of a pack have ids: chunks of the volume do not go again.
    pub(super) fn chunks_named(&mut self, number: PackNumber, names: Vec<ChunkId>) {
        if !self.has_rows_of(number, &names) {
            // `pages_came` goes on.
            self.uploads.late.push((number, names));
            return;
        }
        let Some(mut upload) = self.uploads.packs.remove(&number.0) else {
            return;
        };
        let chunks = std::mem::take(&mut upload.chunks).into_iter();
        let chunks = chunks.zip(std::mem::take(&mut upload.unpacked)).zip(names);
        let mut known = Vec::new();
        let mut twins = Vec::new();
        for ((cut, unpacked), name) in chunks {
            let octets = cut.octets();
            let is_long = octets >= SHARED_MIN;
            if let Some(extent) = is_long.then(|| self.known_chunk(name, octets)).flatten() {
                known.push((cut, extent));
            } else if let Some(place) = self.uploads.coming.get(&name).filter(|_| is_long) {
                twins.push((*place, cut));
            } else {
                let place = (number.0, upload.chunks.len());
                self.uploads.coming.insert(name, place);
                upload.add(cut, unpacked, name);
            }
        }
        let saved: usize = known.iter().map(|(cut, _)| cut.octets()).sum();
        let saved = saved.saturating_add(twins.iter().map(|(_, cut)| cut.octets()).sum());
        self.local.shares(saved);
        self.accounts.group_ends(upload.group, saved);
        upload.octets = upload.octets.saturating_sub(saved);
        let is_empty = upload.chunks.is_empty();
        if !is_empty {
            self.uploads.packs.insert(number.0, upload);
            self.make_pack(number);
        }
        for ((pack, place), cut) in twins {
            self.set_fates(&cut, Fate::Sending(pack));
            self.commits.also(number, PackNumber(pack));
            if let Some(upload) = self.uploads.packs.get_mut(&pack) {
                upload.twins.push((place, cut));
            }
        }
        for (cut, extent) in known {
            self.place(&cut, extent);
        }
        if is_empty {
            self.pack_stored(number);
            self.upload_more();
            self.resume_blocked();
        }
    }

    /// Whether the rows are there for a judgement of each hint.
    fn has_rows_of(&mut self, number: PackNumber, names: &[ChunkId]) -> bool {
        let Some(upload) = self.uploads.packs.get(&number.0) else {
            return true;
        };
        let keys = &self.seals.keys;
        let named = upload.chunks.iter().zip(names);
        let hints = named.filter_map(|(cut, name)| {
            let hint = self.local.chunk(keys, *name, cut.octets())?;
            Some((hint.pack.0, cut.inode))
        });
        let (packs, inodes): (Vec<u64>, BTreeSet<Inode>) = hints.unzip();
        packs.is_empty() || self.has_hints(packs, inodes)
    }

    /// Has the mails of a pack made.
    pub(super) fn make_pack(&mut self, number: PackNumber) {
        let Some(upload) = self.uploads.packs.get(&number.0) else {
            return;
        };
        let job = PackJob {
            seals: self.seals.clone(),
            pack: number,
            group: upload.group,
            chunks: upload.unpacked.clone(),
            names: upload.names.clone(),
            encodings: self.accounts.encodings(upload.group),
            date: self.now.date(),
        };
        self.work(Job(Task::Pack(job)), Working::Pack(number));
    }

    pub(super) fn set_fates(&mut self, cut: &Cut, fate: Fate) {
        for (id, skip, length) in &cut.ranges {
            let range = FateRange {
                skip: *skip,
                length: *length,
                fate,
            };
            self.fates.set(*id, range);
        }
    }

    /// The place of a chunk with an id and a length, if the volume has a readable chunk.
    pub(super) fn known_chunk(&self, name: ChunkId, octets: usize) -> Option<Extent> {
        let extent = self.local.chunk(&self.seals.keys, name, octets)?;
        let located = self.located(extent.pack.0)?;
        let condemned = Key::Tombstone(extent.pack.0).encode();
        let is_condemned = self.files.tree().get(&condemned).ok()?.is_some();
        let mut copies = located.copies.iter();
        let is_readable = copies.any(|copy| self.accounts.encoding(copy.account).is_some());
        (is_readable && !is_condemned).then_some(extent)
    }

    /// A chunk is stored.
    pub(super) fn note_chunk(&mut self, name: ChunkId, octets: usize, extent: Extent) {
        self.local.note(&self.seals.keys, name, octets, extent);
    }

    /// Copies of a pack are damaged or gone: hints to the pack do not count any more.
    pub(super) fn distrust(&mut self, pack: PackNumber) {
        self.local.distrust(&self.seals.keys, pack);
    }

    /// Packs of files without written rows.
    pub(super) fn packs_in_use(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.packs_of_dirty().chain(self.fates.packs())
    }
}
