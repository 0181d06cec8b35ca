//! The segment that is being written.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use vere_checksum::{Crc32, crc32};

use super::disk::{Disk, Output, write_all};
use crate::entry::Entry;
use crate::error::ArchiveError;
use crate::format::{
    EntryHead, FILE_HEAD_OCTETS, FileHead, FileKind, HEAD_OCTETS, Record, Summary, encode,
};
use crate::name::SegmentName;

/// Synced octets leave the cache of the system in parts of at least this size: the next octets then take the memory of the
/// last, and a busy archive does not fill the cache with what nobody reads soon.
const SET_ASIDE_OCTETS: u64 = 1 << 20;
/// The page of the largest common size: a part of a page stays cached.
pub(super) const PAGE_OCTETS: u64 = 64 << 10;

/// Buffers of heads that are kept from one batch to the next.
const BUFFER_OCTETS_KEPT: usize = 4 << 20;

/// A segment and its index.
pub(super) struct Current {
    pub(super) name: SegmentName,
    path: PathBuf,
    file: Box<dyn Output>,
    head: FileHead,
    /// All octets before this place are whole entries.
    length: u64,
    /// Octets before this place have left the cache of the system.
    set_aside: u64,
    summary: Summary,
    index: Index,
    /// The names of both files are on stable storage.
    is_named: bool,
    buffer: Vec<u8>,
}

/// What is written to the index. The index is a help for readers: a failure costs the rest of the index, no entry.
struct Index {
    path: PathBuf,
    file: Option<Box<dyn Output>>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Current {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Current")
            .field("name", &self.name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Current {
    /// Begins a segment that does not exist. Nothing is on stable storage before the first sync.
    pub(super) fn begin(
        disk: &dyn Disk,
        folder: &Path,
        name: SegmentName,
        nonce: u64,
    ) -> Result<Self, ArchiveError> {
        let day = folder.join(name.day().to_string());
        disk.make_folder(&day)
            .map_err(|error| ArchiveError::of(&day, &error))?;
        let (path, index_path) = (name.path(folder, "seg"), name.path(folder, "idx"));
        let file = disk
            .create(&path)
            .map_err(|error| ArchiveError::of(&path, &error))?;
        let head = FileHead {
            nonce,
            start: name.start(),
        };
        let mut index = Index {
            file: None,
            path: index_path,
            buffer: head.encode(FileKind::Index).to_vec(),
        };
        match disk.create(&index.path) {
            Ok(file) => index.file = Some(file),
            Err(error) => index.fail(&error),
        }
        Ok(Self {
            name,
            path,
            file,
            head,
            length: 0,
            set_aside: 0,
            summary: Summary::default(),
            index,
            is_named: false,
            buffer: Vec::new(),
        })
    }

    /// The length, in octets.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Writes entries behind each other, as one write. On an error the segment is as before.
    ///
    /// # Errors
    ///
    /// The words of the operating system; and whether the segment can be used further.
    pub(super) fn write(&mut self, entries: &[&Entry]) -> Result<(), (ArchiveError, bool)> {
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_OCTETS_KEPT);
        let index_before = self.index.buffer.len();
        let mut end = self.length;
        if end == 0 {
            self.buffer
                .extend_from_slice(&self.head.encode(FileKind::Segment));
            end = FILE_HEAD_OCTETS;
        }
        let mut cuts = Vec::with_capacity(entries.len());
        for entry in entries {
            end = self.put(entry, end);
            cuts.push(self.buffer.len());
        }
        let mut pieces = pieces(&self.buffer, &cuts, entries);
        match write_all(self.file.as_mut(), &mut pieces) {
            Ok(()) => {
                self.length = end;
                for entry in entries {
                    self.summary.add(entry.at, entry.octets_len());
                }
                Ok(())
            }
            Err(error) => {
                self.index.buffer.truncate(index_before);
                let is_usable = self.file.cut(self.length).is_ok();
                Err((ArchiveError::of(&self.path, &error), is_usable))
            }
        }
    }

    /// Puts head and fields of an entry into the buffer, and its record into the buffer of the index. Returns the end.
    fn put(&mut self, entry: &Entry, offset: u64) -> u64 {
        let head_at = self.buffer.len();
        self.buffer.resize(head_at + HEAD_OCTETS as usize, 0);
        encode(entry, &mut self.buffer);
        let fields = self
            .buffer
            .get(head_at + HEAD_OCTETS as usize..)
            .unwrap_or_default();
        let mut sum = Crc32::default();
        entry.octets.iter().for_each(|piece| sum.update(piece));
        let head = EntryHead {
            nonce: self.head.nonce,
            offset,
            // The caller's thread compared the length with its bound.
            meta: u32::try_from(fields.len()).unwrap_or(u32::MAX),
            meta_sum: crc32(fields),
            octets: entry.octets_len(),
            octets_sum: sum.finish(),
        };
        if self.index.file.is_some() {
            let record = record(&head);
            self.index.buffer.extend_from_slice(&record.encode());
            self.index.buffer.extend_from_slice(fields);
        }
        if let Some(place) = self.buffer.get_mut(head_at..head_at + HEAD_OCTETS as usize) {
            place.copy_from_slice(&head.encode());
        }
        head.end()
    }

    /// Brings everything written to stable storage, with the names of the files.
    pub(super) fn sync(&mut self, disk: &dyn Disk, folder: &Path) -> Result<(), ArchiveError> {
        self.file
            .sync()
            .map_err(|error| ArchiveError::of(&self.path, &error))?;
        if !self.is_named {
            let day = folder.join(self.name.day().to_string());
            disk.sync_folder(&day)
                .map_err(|error| ArchiveError::of(&day, &error))?;
            // Whoever made the folder of the day may have failed before its sync.
            disk.sync_folder(folder)
                .map_err(|error| ArchiveError::of(folder, &error))?;
            self.is_named = true;
        }
        self.set_aside();
        Ok(())
    }

    /// Lets synced octets leave the cache of the system.
    fn set_aside(&mut self) {
        if self.length.saturating_sub(self.set_aside) >= SET_ASIDE_OCTETS {
            self.file.set_aside(self.set_aside..self.length);
            self.set_aside = self.length - self.length % PAGE_OCTETS;
        }
    }

    /// Gives readers the records of the entries written; not synced.
    pub(super) fn publish(&mut self) {
        self.index.write();
    }

    /// Ends the segment: the index gets its trailer, and both are synced.
    pub(super) fn close(mut self, disk: &dyn Disk, folder: &Path) {
        if self.length == 0 {
            let _ = disk.remove(&self.path);
            let _ = disk.remove(&self.index.path);
            return;
        }
        if let Err(error) = self.sync(disk, folder) {
            // The next opening repairs the segment.
            tracing::error!(segment = %self.name, %error, "segment of the archive cannot be synced");
            return;
        }
        let trailer = self.summary.trailer(self.length);
        self.index.buffer.extend_from_slice(&trailer);
        self.index.write();
        let synced = self.index.file.as_mut().map(|file| file.sync());
        if let Some(Err(error)) = synced {
            self.index.fail(&error);
        }
    }

    /// Gives the segment up after a failed sync, without what was refused from `cut` on: the system may have dropped
    /// octets, and so a later sync proves nothing.
    pub(super) fn abandon(mut self, cut: Option<u64>) {
        let is_cut = cut.map(|length| self.file.cut(length).is_ok());
        tracing::warn!(segment = %self.name, length = self.length, ?cut, ?is_cut, "segment of the archive abandoned");
    }
}

impl Index {
    fn write(&mut self) {
        let Some(file) = &mut self.file else {
            self.buffer.clear();
            return;
        };
        let written = write_all(file.as_mut(), &mut [IoSlice::new(&self.buffer)]);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_OCTETS_KEPT);
        if let Err(error) = written {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.file = None;
        self.buffer.clear();
        tracing::warn!(index = %self.path.display(), %error, "index of the archive cannot be written; the next start rebuilds the index");
    }
}

/// The record of an entry.
pub(super) const fn record(head: &EntryHead) -> Record {
    Record::Entry {
        offset: head.offset,
        octets: head.octets,
        meta: head.meta,
        sum: head.meta_sum,
    }
}

/// Heads and fields, which end at `cuts` in the buffer, with the octets of each entry behind its own.
fn pieces<'a>(buffer: &'a [u8], cuts: &[usize], entries: &[&'a Entry]) -> Vec<IoSlice<'a>> {
    let count: usize = entries.iter().map(|entry| entry.octets.len() + 1).sum();
    let mut pieces = Vec::with_capacity(count);
    let mut from = 0;
    for (cut, entry) in cuts.iter().zip(entries) {
        pieces.push(IoSlice::new(buffer.get(from..*cut).unwrap_or_default()));
        from = *cut;
        pieces.extend(entry.octets.iter().map(|piece| IoSlice::new(piece)));
    }
    pieces
}
