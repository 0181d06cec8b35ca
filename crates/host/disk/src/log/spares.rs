//! Segment files prepared in advance: reused or new.
//!
//! With a file that has its name, length and blocks, a sync writes only the octets of entries. With a
//! new file the sync also waits for the directory and the length. So the syncing thread prepares files
//! under the next numbers, and old segments get a new number instead of being removed. The octets in a
//! prepared file have no meaning: the head has another number, and the entries lie at positions passed
//! long ago.

use std::collections::VecDeque;
use std::io;

use vere_ports::storage::{Storage, StorageFile};

use super::format::segment_name;

/// The name of a file in the making.
const UNNAMED: &str = "spare";
/// The most octets of a log's spare files, and the most spare files.
const OCTETS_MAX: u64 = 64 << 20;
const FILES_MAX: u64 = 16;
/// Octets of old segments retired together, and the most segments.
const RETIRED_OCTETS: u64 = 32 << 20;
const RETIRED_AT_ONCE: u64 = 8;
/// Zeros are written in pieces of this many octets.
const ZEROS: usize = 256 << 10;

/// A file for a segment to come.
#[derive(Debug)]
struct Spare<F> {
    file: F,
    /// Whether the file's name is on stable storage.
    lasts: bool,
}

/// The files for the next segments of a log.
#[derive(Debug)]
pub(super) struct Spares<S: Storage> {
    storage: S,
    files: VecDeque<Spare<S::File>>,
    /// The number of the next segment, which will use the first spare file.
    next: u64,
    /// Octets of a file; 0: no spare files.
    len: u64,
    /// How many are to be there.
    goal: usize,
    /// The disk is full: no spare files are made or kept.
    scarce: bool,
}

/// The octets of a file whose segment ends with the entry that reaches `segment_len`.
pub(super) const fn file_len(segment_len: u64) -> u64 {
    segment_len.saturating_add(segment_len / 8)
}

/// How many old segments are retired together.
pub(super) fn retired_at_once(segment_len: u64) -> u64 {
    (RETIRED_OCTETS / segment_len.max(1)).clamp(1, RETIRED_AT_ONCE)
}

impl<S: Storage> Spares<S> {
    /// None yet. `next`: the number of the segment after the newest.
    pub(super) const fn new(storage: S, segment_len: u64, next: u64) -> Self {
        let len = file_len(segment_len);
        Self {
            storage,
            files: VecDeque::new(),
            next,
            len: if len > OCTETS_MAX { 0 } else { len },
            goal: 1,
            scarce: false,
        }
    }

    /// The file for the next segment, and whether its name lasts already.
    pub(super) fn take(&mut self) -> io::Result<(S::File, bool)> {
        let taken = if let Some(spare) = self.files.pop_front() {
            (spare.file, spare.lasts)
        } else {
            let file = self.storage.create(&segment_name(self.next))?;
            self.goal = (self.goal * 2).min(self.most());
            (file, false)
        };
        self.next += 1;
        Ok(taken)
    }

    /// The segment was not begun after all.
    pub(super) fn put_back(&mut self, file: S::File) {
        self.next -= 1;
        self.files.push_front(Spare { file, lasts: false });
    }

    fn most(&self) -> usize {
        (OCTETS_MAX / self.len.max(1)).min(FILES_MAX) as usize
    }

    /// How many are missing, when it is time to make some.
    pub(super) fn missing(&self) -> usize {
        let there = self.files.len();
        if self.len == 0 || self.scarce || there >= self.goal.div_ceil(2) {
            return 0;
        }
        self.goal - there
    }

    /// Whether new files are filled with zeros instead of being only allocated. A log with slow use of
    /// spare files gets filled files: a sync then has no blocks to convert either.
    pub(super) const fn are_written(&self) -> bool {
        self.goal == 1
    }

    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the disk is full.
    pub(super) const fn is_scarce(&self) -> bool {
        self.scarce
    }

    /// Gives a new file its name.
    pub(super) fn add_new(&mut self, file: S::File) -> io::Result<()> {
        self.add(UNNAMED, file)
    }

    /// Reuses the file of an old segment, or removes the file.
    pub(super) fn retire(&mut self, number: u64) -> io::Result<()> {
        let name = segment_name(number);
        if self.files.len() < self.most() && !self.scarce {
            let file = self.storage.open(&name)?;
            // A file made longer by a long entry, or of another length from the beginning, is not worth
            // keeping.
            if file.len()? == self.len {
                return self.add(&name, file);
            }
        }
        self.storage.remove(&name)
    }

    fn add(&mut self, name: &str, file: S::File) -> io::Result<()> {
        let number = self.next + self.files.len() as u64;
        self.storage.rename(name, &segment_name(number))?;
        self.files.push_back(Spare { file, lasts: false });
        Ok(())
    }

    /// Whether the disk is full. On a full disk all spare files are removed: other files need the space.
    pub(super) fn set_scarce(&mut self, scarce: bool) {
        self.scarce = scarce;
        while scarce && !self.files.is_empty() {
            let name = segment_name(self.end() - 1);
            if let Err(error) = self.storage.remove(&name) {
                tracing::warn!(file = name, %error, "cannot remove spare log segment");
                return;
            }
            self.files.pop_back();
        }
    }

    /// Whether the directory should be synced, to make the names of the next files durable.
    pub(super) fn are_unsafe(&self) -> bool {
        let soon = self.files.len().div_ceil(2);
        self.files.iter().take(soon).any(|spare| !spare.lasts)
    }

    /// The number after the last spare file.
    pub(super) fn end(&self) -> u64 {
        self.next + self.files.len() as u64
    }

    /// Records that the names before this number are durable.
    pub(super) fn last(&mut self, end: u64) {
        let count = end.saturating_sub(self.next) as usize;
        for spare in self.files.iter_mut().take(count) {
            spare.lasts = true;
        }
    }
}

/// The file of a log's first segment.
pub(super) fn first<S: Storage>(storage: &S, segment_len: u64) -> io::Result<S::File> {
    let (name, len) = (segment_name(1), file_len(segment_len));
    if len <= OCTETS_MAX {
        let made = make(storage, len, true).and_then(|file| {
            storage.rename(UNNAMED, &name)?;
            Ok(file)
        });
        match made {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            other => return other,
        }
    }
    storage.create(&name)
}

/// Makes a file of this length without a number, replacing a left-over file. On return the content is on
/// stable storage, but not the name.
pub(super) fn make<S: Storage>(storage: &S, len: u64, write: bool) -> io::Result<S::File> {
    match storage.remove(UNNAMED) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = storage.create(UNNAMED)?;
    let made = file.allocate(len).and_then(|()| {
        if write {
            write_zeros(&file, 0, len)?;
        }
        file.sync()
    });
    match made {
        Ok(()) => Ok(file),
        Err(error) => {
            storage.remove(UNNAMED)?;
            Err(error)
        }
    }
}

/// Writes zeros from one offset to another.
pub(super) fn write_zeros<F: StorageFile>(file: &F, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS.min(to.saturating_sub(from) as usize)];
    let mut at = from;
    while at < to {
        let part = zeros.len().min((to - at) as usize);
        file.write_at([&zeros[..part], &[]], at)?;
        at += part as u64;
    }
    Ok(())
}
