//! The journal: every change in order, on the local disk before its call is answered, until a commit has it.
//!
//! ```text
//! segment  journal-<first position, 16 hexadecimal digits>
//! head     0  "VEREJRNL" | version u32 = 1 | 0 u32 | random (16) | first position u64 | crc32c of octets 0..40 u32
//! record   0  position u64 | sealed length u32 | crc32c of the sealed octets u32 | crc32c of octets 0..16 u32
//!         20  sealed record
//! ```
//!
//! Behind the last record of the last segment there may be zeros: a sync of octets that lengthen a file waits for the file system's
//! own journal, and so for whatever other programs are writing; a sync of octets in place of zeros does not.
//!
//! Positions are octets of all segments laid end to end, without heads. The nonce of a record is the segment's random and
//! the position; every start begins a segment, so no nonce seals twice.

use std::fmt;
use std::io;

use vere_checksum::crc32c;
use vere_ports::storage::{Storage, StorageFile};

pub use self::error::JournalError;

use self::backlog::{Backlog, lacks_room};
use self::head::{HEAD, SEALED_MAX, encode_head, name_of, nonce, read_head, segments_of};
use self::outcomes::Outcomes;
pub use self::outcomes::pieces;
use self::reading::{has_record, read_records};
use super::record::{self, Part};
use crate::format::seal::seal;

/// Octets of a segment, but for the record that crosses the bound.
const SEGMENT_MAX: u64 = 64 << 20;
/// Zeros behind the records: a sync with fewer than the least writes zeros up to the most.
const ZEROS_MIN: u64 = 128 << 10;
const ZEROS_MAX: u64 = 512 << 10;

/// A journal in a folder.
pub struct Journal<S: Storage> {
    storage: S,
    key: [u8; 32],
    random: [u8; 16],
    segments: Vec<Segment<S::File>>,
    position: u64,
    /// Whether octets were written since the last sync began.
    unsynced: bool,
    /// Records that a full disk has no room for, in order.
    backlog: Backlog,
    segment_max: u64,
    /// The disk has failed: nothing is written any more.
    has_failed: bool,
    left_out: Option<LeftOut>,
}

/// Records behind a damaged one at the end of a journal: a power cut leaves such records, which no sync had covered, and so does a
/// disk that loses what was synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The segment.
    pub file: String,
    /// Where the damaged record begins.
    pub at: u64,
    /// Octets from there on.
    pub octets: u64,
}

struct Segment<F> {
    first: u64,
    name: String,
    file: F,
    /// Octets of the file that were written, as records or as zeros.
    written: u64,
}

impl<S: Storage> fmt::Debug for Journal<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("position", &self.position)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}

impl<S: Storage> Journal<S> {
    /// Opens the journal of a folder, hands every whole record to `replay` with its position, and begins a segment. A torn end is
    /// cut away. Records about a merge count with the last record of the merge alone.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(
        storage: S,
        key: &[u8; 32],
        random: [u8; 16],
        mut replay: impl FnMut(u64, Vec<Part>),
    ) -> Result<Self, JournalError> {
        let mut journal = Self {
            storage,
            key: *key,
            random,
            segments: Vec::new(),
            position: 0,
            unsynced: false,
            backlog: Backlog::default(),
            segment_max: SEGMENT_MAX,
            has_failed: false,
            left_out: None,
        };
        let names = segments_of(&journal.storage)?;
        failed::mend(
            &journal.storage,
            names.iter().rev().map(|(_, name)| name.as_str()),
        )?;
        let count = names.len();
        let mut outcomes = Outcomes::default();
        let mut see = |position, parts| outcomes.take(position, parts, &mut replay);
        for (number, (first, name)) in names.into_iter().enumerate() {
            let is_last = number.saturating_add(1) == count;
            journal.read_segment(first, name, is_last, &mut see)?;
        }
        let position = journal.position;
        journal.begin_segment(position)?;
        Ok(journal)
    }

    fn read_segment(
        &mut self,
        first: u64,
        name: String,
        is_last: bool,
        replay: &mut impl FnMut(u64, Vec<Part>),
    ) -> Result<(), JournalError> {
        let file = self.storage.open(&name)?;
        let length = file.len()?;
        let Some(random) = read_head(&file, length, first, &name)? else {
            // The power went before the head was whole: the segment has no record.
            if !is_last {
                return Err(JournalError::Damaged { file: name, at: 0 });
            }
            self.storage.remove(&name)?;
            return Ok(());
        };
        if let Some(before) = self.segments.last()
            && first != self.position
        {
            let (file, at) = (before.name.clone(), before.written);
            return Err(JournalError::Damaged { file, at });
        }
        let key = &self.key;
        let position = read_records(
            key,
            (&file, name.as_str()),
            (&random, first, length),
            replay,
        )?;
        let at = HEAD.saturating_add(position.saturating_sub(first));
        if is_last {
            // Zeros, or a torn record; a segment with a successor must end with its last record.
            if at != length {
                if has_record(key, &file, (&random, first, length), at)? {
                    let (file, octets) = (name.clone(), length.saturating_sub(at));
                    self.left_out = Some(LeftOut { file, at, octets });
                }
                file.truncate(at)?;
            }
            // A kill may have left records without a sync. A successor on the disk without them would be damage.
            file.sync()?;
        }
        self.position = position;
        self.segments.push(Segment {
            first,
            name,
            file,
            written: at,
        });
        Ok(())
    }

    /// Records that the opening has cut away although they are whole, because an earlier one is damaged.
    pub const fn left_out(&self) -> Option<&LeftOut> {
        self.left_out.as_ref()
    }

    /// Has further segments end after so many octets, so that a test meets the ends of many.
    pub const fn limit_segments(&mut self, octets: u64) {
        self.segment_max = octets;
    }

    /// The position behind the last record.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Octets from the oldest record that is kept on.
    pub fn octets(&self) -> u64 {
        let first = self
            .segments
            .first()
            .map_or(self.position, |segment| segment.first);
        self.position.saturating_sub(first)
    }

    /// Writes a record, and returns its position. The record survives a kill, and a power cut behind the next [`Self::sync`].
    /// A full disk has the record wait in memory: [`Self::is_full`].
    ///
    /// # Errors
    /// The error of the disk. Nothing is written then, or a torn record that a start cuts away. [`io::ErrorKind::InvalidInput`] for
    /// a record that is too long; the journal stays usable.
    pub fn append(&mut self, parts: &[Part]) -> io::Result<u64> {
        self.expect_whole()?;
        let record = self.sealed(parts)?;
        let position = self.position;
        let length = record.len() as u64;
        if self.is_full() {
            self.backlog.push(position, record)?;
        } else if let Err(error) = self.write(position, &record) {
            if !lacks_room(&error) {
                // Another record at this position would be sealed with an equal nonce.
                self.has_failed = true;
                return Err(error);
            }
            self.backlog.push(position, record)?;
        }
        self.position = position.saturating_add(length);
        Ok(position)
    }

    /// The octets of a record at the present position.
    fn sealed(&self, parts: &[Part]) -> io::Result<Vec<u8>> {
        let mut sealed = record::encode(parts);
        let nonce = nonce(&self.random, self.position);
        let tag = seal(&self.key, &nonce, &[], &mut sealed);
        let tag = tag.ok_or_else(|| io::Error::other("a record is too long to be sealed"))?;
        sealed.extend_from_slice(&tag);
        let length = u32::try_from(sealed.len()).unwrap_or(u32::MAX);
        if length > SEALED_MAX {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io::Error::new(kind, "a record is too long"));
        }
        let mut record = Vec::with_capacity(sealed.len().saturating_add(20));
        record.extend_from_slice(&self.position.to_le_bytes());
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&crc32c(&sealed).to_le_bytes());
        let sum = crc32c(&record);
        record.extend_from_slice(&sum.to_le_bytes());
        record.extend_from_slice(&sealed);
        Ok(record)
    }

    /// Writes a record at its position, in a new segment if the last one is long enough.
    fn write(&mut self, position: u64, record: &[u8]) -> io::Result<()> {
        if self.segment_at(position) >= self.segment_max {
            self.end_segment(position)?;
            self.begin_segment(position)?;
        }
        let at = self.end(position);
        let end = at.saturating_add(record.len() as u64);
        if let Some(segment) = self.segments.last_mut() {
            segment.file.write_at([record, &[]], at)?;
            segment.written = segment.written.max(end);
        }
        self.unsynced = true;
        Ok(())
    }

    /// Whether records wait for room on the disk.
    pub fn is_full(&self) -> bool {
        !self.backlog.records.is_empty()
    }

    /// Writes records that wait for room. Returns whether none waits any more.
    ///
    /// # Errors
    /// The error of the disk, but for a lack of room.
    pub fn retry(&mut self) -> io::Result<bool> {
        self.expect_whole()?;
        while let Some((position, record)) = self.backlog.records.pop_front() {
            match self.write(position, &record) {
                Ok(()) => {
                    let octets = self.backlog.octets;
                    self.backlog.octets = octets.saturating_sub(record.len());
                }
                Err(error) => {
                    self.backlog.records.push_front((position, record));
                    if lacks_room(&error) {
                        return Ok(false);
                    }
                    self.has_failed = true;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Octets of the last segment before a position.
    fn segment_at(&self, position: u64) -> u64 {
        let first = self.segments.last().map_or(position, |last| last.first);
        position.saturating_sub(first)
    }

    /// Where a record of a position lies in the last segment.
    fn end(&self, position: u64) -> u64 {
        HEAD.saturating_add(self.segment_at(position))
    }

    /// Has zeros behind the last record, where there are too few. A disk without room has none: that costs time only.
    fn write_zeros(&mut self) {
        let end = self.end(self.position);
        let Some(segment) = self.segments.last_mut() else {
            return;
        };
        if segment.written >= end.saturating_add(ZEROS_MIN) {
            return;
        }
        let until = end.saturating_add(ZEROS_MAX);
        let count = until.saturating_sub(segment.written);
        let zeros = vec![0; usize::try_from(count).unwrap_or(0)];
        if segment
            .file
            .write_at([&zeros, &[]], segment.written)
            .is_ok()
        {
            segment.written = until;
        }
    }

    /// Cuts the zeros of the last segment away, and syncs: a further segment follows.
    fn end_segment(&mut self, position: u64) -> io::Result<()> {
        let end = self.end(position);
        if let Some(segment) = self.segments.last_mut()
            && segment.written > end
        {
            segment.file.truncate(end)?;
            segment.written = end;
        }
        self.unsynced = false;
        let synced = self
            .segments
            .last()
            .map_or(Ok(()), |segment| segment.file.sync());
        synced.inspect_err(|_| self.sync_failed())
    }

    /// The file to be synced, if anything was written since the last call.
    pub fn take_unsynced(&mut self) -> Option<S::File> {
        std::mem::take(&mut self.unsynced)
            .then(|| self.segments.last().map(|segment| segment.file.clone()))
            .flatten()
    }

    /// Brings every record to stable storage.
    ///
    /// # Errors
    /// The error of the disk, final for all records since the last sync.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.retry()? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.unsynced {
            self.write_zeros();
        }
        let synced = self.take_unsynced().map_or(Ok(()), |file| file.sync());
        synced.inspect_err(|_| self.sync_failed())
    }

    /// A sync has failed: the disk may have lost any record since the last sync, and a later sync would not tell. Nothing is
    /// written any more. Until the power goes, the system still has the records, and the next start writes them anew.
    pub fn sync_failed(&mut self) {
        self.has_failed = true;
        failed::note(&self.storage);
    }

    /// Whether the disk has failed, so that nothing is written any more.
    pub const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// After a failure nothing is written.
    fn expect_whole(&self) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("the disk has failed before"));
        }
        Ok(())
    }

    /// Whether a release up to this position drops a segment.
    pub fn releases(&self, before: u64) -> bool {
        matches!(self.segments.as_slice(), [_, next, ..] if next.first <= before)
    }

    /// Drops segments with no record from this position on.
    ///
    /// # Errors
    /// The error of the disk; the journal stays usable.
    pub fn release(&mut self, before: u64) -> io::Result<()> {
        while let [oldest, next, ..] = self.segments.as_slice()
            && next.first <= before
        {
            self.storage.remove(&oldest.name)?;
            self.segments.remove(0);
        }
        Ok(())
    }

    fn begin_segment(&mut self, first: u64) -> io::Result<()> {
        let name = name_of(first);
        // A segment without a record has the name of its successor, and so has one that a full disk left without a head.
        self.segments.retain(|segment| segment.name != name);
        let file = match self.storage.create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.storage.remove(&name)?;
                self.storage.create(&name)
            }
            created => created,
        }?;
        file.write_at([&encode_head(&self.random, first), &[]], 0)?;
        file.sync()?;
        self.storage.sync()?;
        self.segments.push(Segment {
            first,
            name,
            file,
            written: HEAD,
        });
        Ok(())
    }
}

mod backlog;
mod error;
mod failed;
mod handed;
mod head;
mod inspect;
mod outcomes;
mod reading;
mod reread;
#[cfg(test)]
mod tests;
