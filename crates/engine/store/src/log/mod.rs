//! The segment log: everything the store knows, appended once and synced in groups.
//!
//! Records have positions, counted in octets since the store began. Segments are files that hold
//! the records from one position to the next segment's. Appending gathers records in memory; a
//! [`SyncJob`] writes and syncs what was gathered, away from the store, and everybody who waits for
//! a position before its end is served by the one sync.

mod error;
mod files;
pub(crate) mod format;
mod job;
mod reach;
mod reclaiming;
mod recover;
mod rewrite;
mod spare;
mod survey;
mod windowed;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use vere_ports::storage::{Storage, StorageFile};

use crate::error::StoreError;
use format::{RECORD_HEAD, RecordHead, RecordKind, SEGMENT_HEAD, SegmentHead, segment_name};

pub use error::OpenError;
pub(crate) use error::io_error;
pub use files::LogFile;
pub(crate) use job::{Needed, Snapshots};
pub use job::{ReclaimJob, ReclaimOutcome};
pub use recover::OpenReport;
pub(crate) use recover::Replay;
use rewrite::Index;
pub use spare::SPARES;
use spare::Spare;
pub use survey::Damage;
pub(crate) use survey::Survey;

/// A position in the log; a record at a lower position was logged earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

impl Position {
    /// The end of a log without a record.
    pub const FIRST: Self = Self(format::FIRST_POSITION);
}

/// Gathered octets from which the log writes to the file without waiting for a sync.
const BUFFER_MAX: usize = 1024 * 1024;
/// Octets of a segment file that is started while the disk is nearly full.
const SMALL_SEGMENT: u64 = 1024 * 1024;

/// Segments by the position of their first record.
pub(crate) type Segments<F> = Arc<BTreeMap<u64, Segment<F>>>;

/// A segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment<F> {
    file: F,
    /// Octets that the file has space for, the segment head included.
    room: u64,
    /// The index of records, if the segment was written again.
    index: Option<Index>,
}

/// The log.
#[derive(Debug)]
pub(crate) struct Log<S: Storage> {
    storage: S,
    id: u64,
    segment_size: u64,
    /// By the position of the first record.
    segments: Segments<S::File>,
    /// Records from `written` on.
    buffer: Vec<u8>,
    written: u64,
    synced: u64,
    /// Files with writes since the last sync job.
    touched: Vec<S::File>,
    /// Whether a file was created since the last sync job.
    names: bool,
    /// Whether a sync job runs: two jobs could finish in the wrong order.
    syncing: bool,
    spare: Spare,
    failed: Option<String>,
}

/// Brings a part of the log to stable storage, without access to the store.
#[derive(Debug)]
#[must_use = "nothing is safe until it ran and its outcome was handed in"]
pub struct SyncJob<S: Storage> {
    storage: S,
    files: Vec<S::File>,
    names: bool,
    upto: u64,
}

/// The outcome of a [`SyncJob`].
#[derive(Debug)]
#[must_use = "hand it to the store"]
pub struct SyncOutcome {
    pub(crate) upto: u64,
    pub(crate) result: Result<(), String>,
}

impl SyncOutcome {
    /// The position before which every record is safe now; absent if the sync failed.
    #[must_use]
    pub fn synced(&self) -> Option<Position> {
        self.result.is_ok().then_some(Position(self.upto))
    }
}

impl<S: Storage> SyncJob<S> {
    /// The position before which every record is safe once the job has run.
    #[must_use]
    pub fn upto(&self) -> Position {
        Position(self.upto)
    }

    /// Syncs; blocks on the disk.
    pub fn run(self) -> SyncOutcome {
        let result = self.try_run().map_err(|error| error.to_string());
        SyncOutcome {
            upto: self.upto,
            result,
        }
    }

    fn try_run(&self) -> io::Result<()> {
        for file in &self.files {
            file.sync()?;
        }
        if self.names {
            self.storage.sync()?;
        }
        Ok(())
    }
}

impl<S: Storage> Log<S> {
    /// The position after the last record.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The position before which every record is on stable storage.
    pub(crate) fn synced(&self) -> u64 {
        self.synced
    }

    /// The directory of the files.
    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    /// Returns the gathered octets from a position on that are in no file yet.
    pub(crate) fn gathered(&self, position: u64) -> Option<&[u8]> {
        let offset = position.checked_sub(self.written)?;
        self.buffer.get(usize::try_from(offset).ok()?..)
    }

    /// Marks the log as failed: the log refuses all further records.
    pub(crate) fn fail(&mut self, reason: String) -> StoreError {
        StoreError::Failed(self.failed.get_or_insert(reason).clone())
    }

    /// Fails if the log has failed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.failed {
            Some(reason) => Err(StoreError::Failed(reason.clone())),
            None => Ok(()),
        }
    }

    /// Makes sure that `octets` of records, heads included, can be appended. On a full disk the spare files are given
    /// up.
    ///
    /// # Errors
    ///
    /// [`StoreError::DiskFull`] leaves everything as it was; [`StoreError::Failed`] is final.
    pub(crate) fn reserve(&mut self, octets: u64) -> Result<(), StoreError> {
        let least = octets + SEGMENT_HEAD as u64;
        let whole = self.segment_size.max(least);
        let small = self.segment_size.min(SMALL_SEGMENT).max(least);
        let mut done = self.reserve_freely(octets);
        while matches!(done, Err(StoreError::DiskFull)) {
            // The disk may still have space for a small segment, and reclaiming needs the spare files too.
            if small < whole {
                done = self.roll(small);
                if !matches!(done, Err(StoreError::DiskFull)) {
                    break;
                }
            }
            if !self.give_up_spare()? {
                break;
            }
            done = self.roll(whole);
        }
        done
    }

    /// Makes sure that `octets` of records can be appended, without giving up the spare files.
    ///
    /// # Errors
    ///
    /// As [`Log::reserve`].
    fn reserve_freely(&mut self, octets: u64) -> Result<(), StoreError> {
        self.check()?;
        if self.newest_room() >= octets {
            return Ok(());
        }
        self.flush()?;
        self.roll(self.segment_size.max(octets + SEGMENT_HEAD as u64))
    }

    /// The position of the first record of the newest segment, which takes new records.
    pub(crate) fn newest(&self) -> u64 {
        let newest = self.segments.keys().next_back();
        newest.copied().unwrap_or_default()
    }

    fn newest_room(&self) -> u64 {
        let Some((first, segment)) = self.segments.last_key_value() else {
            return 0;
        };
        let used = SEGMENT_HEAD as u64 + (self.end() - first);
        segment.room.saturating_sub(used)
    }

    /// Appends a record for which room was reserved, and gives its position.
    pub(crate) fn append(&mut self, kind: RecordKind, parts: &[&[u8]]) -> Result<u64, StoreError> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let short = u32::try_from(length)
            .ok()
            .filter(|_| length <= format::PAYLOAD_MAX);
        let Some(short) = short else {
            return Err(StoreError::TooLarge {
                max: format::PAYLOAD_MAX as u64,
            });
        };
        self.reserve((RECORD_HEAD + length) as u64)?;
        let mut crc = vere_checksum::Crc32::default();
        parts.iter().for_each(|part| crc.update(part));
        let head = RecordHead {
            log: self.id,
            position: self.end(),
            synced: self.synced,
            kind,
            length: short,
            payload_crc: crc.finish(),
        };
        self.buffer.extend_from_slice(&head.encode());
        parts
            .iter()
            .for_each(|part| self.buffer.extend_from_slice(part));
        if self.buffer.len() > BUFFER_MAX {
            self.flush()?;
        }
        Ok(head.position)
    }

    /// Writes the gathered records to the file.
    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let Some((first, segment)) = self.segments.last_key_value() else {
            return Err(self.fail("no segment to write to".to_owned()));
        };
        let offset = SEGMENT_HEAD as u64 + (self.written - first);
        let file = segment.file.clone();
        if let Err(error) = file.write_at([&self.buffer, &[]], offset) {
            // The file may have a part of the records, so no gathered record counts as written.
            return Err(self.fail(error.to_string()));
        }
        self.written = self.end();
        self.buffer.clear();
        if self.touched.is_empty() {
            self.touched.push(file);
        }
        Ok(())
    }

    /// Begins another segment with a file of `room` octets.
    fn roll(&mut self, room: u64) -> Result<(), StoreError> {
        let first = self.end();
        let name = segment_name(first);
        let file = match self.make(&name, first, room) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                // A partial file would block the next attempt.
                return match self.storage.remove(&name) {
                    Ok(()) => Err(StoreError::DiskFull),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(StoreError::DiskFull)
                    }
                    Err(error) => Err(self.fail(error.to_string())),
                };
            }
            Err(error) => return Err(self.fail(error.to_string())),
        };
        self.give_back_room()?;
        Arc::make_mut(&mut self.segments).insert(
            first,
            Segment {
                file: file.clone(),
                room,
                index: None,
            },
        );
        // The next sync job covers the previous segment and the new segment.
        self.touched.push(file);
        self.names = true;
        Ok(())
    }

    fn make(&self, name: &str, first: u64, room: u64) -> io::Result<S::File> {
        let file = self.storage.create(name)?;
        file.allocate(room)?;
        let head = SegmentHead {
            log: self.id,
            first,
            end: 0,
        };
        file.write_at([&head.encode(), &[]], 0)?;
        if self.segments.is_empty() {
            // Of a log without a whole head it must be known that nothing ever was in it.
            file.sync()?;
            self.storage.sync()?;
        }
        Ok(file)
    }

    /// Cuts the newest segment to what is in it.
    fn give_back_room(&mut self) -> Result<(), StoreError> {
        let end = self.end();
        let Some((first, segment)) = self.segments.last_key_value() else {
            return Ok(());
        };
        if segment.index.is_some() {
            return Ok(());
        }
        let used = SEGMENT_HEAD as u64 + (end - first);
        match segment.file.truncate(used) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.fail(error.to_string())),
        }
    }

    /// Writes what was gathered and gives the job that syncs it; absent when everything is synced, or
    /// another job is under way.
    pub(crate) fn sync_job(&mut self) -> Result<Option<SyncJob<S>>, StoreError> {
        self.check()?;
        if self.syncing || (self.end() == self.synced && !self.names) {
            return Ok(None);
        }
        self.flush()?;
        let newest = self.segments.last_key_value();
        let newest = newest.map(|(_, segment)| segment.file.clone());
        let mut files = std::mem::take(&mut self.touched);
        if files.is_empty() {
            files.extend(newest);
        }
        self.syncing = true;
        Ok(Some(SyncJob {
            storage: self.storage.clone(),
            files,
            names: std::mem::take(&mut self.names),
            upto: self.written,
        }))
    }

    /// Takes what came of a job.
    pub(crate) fn finish(&mut self, outcome: SyncOutcome) -> Result<(), StoreError> {
        self.syncing = false;
        match outcome.result {
            Ok(()) => {
                self.synced = self.synced.max(outcome.upto);
                Ok(())
            }
            // The system may have dropped what it could not write and call the rest clean.
            Err(reason) => Err(self.fail(reason)),
        }
    }

    /// Where records lie, and the position before which they are written.
    pub(crate) fn segments(&self) -> (Segments<S::File>, u64) {
        (Arc::clone(&self.segments), self.written)
    }

    /// Octets in files.
    pub(crate) fn octets(&self) -> Result<u64, StoreError> {
        let mut octets = 0;
        for segment in self.segments.values() {
            let len = segment.file.len();
            octets += len.map_err(|error| StoreError::Failed(error.to_string()))?;
        }
        Ok(octets)
    }

    /// The random number of the log.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

/// The place of a record.
pub(crate) struct Place<F> {
    pub(crate) file: F,
    pub(crate) offset: u64,
    /// Octets from the record's offset to the end of the written part of the segment.
    pub(crate) available: u64,
}

/// Returns the possible place of the record at a position before `written`. The caller must verify that the record is
/// there.
///
/// # Errors
///
/// [`StoreError::Failed`] if the index of the segment leads nowhere.
pub(crate) fn locate<F: StorageFile>(
    segments: &Segments<F>,
    log: u64,
    position: u64,
    written: u64,
) -> Result<Option<Place<F>>, StoreError> {
    let Some((first, segment)) = segments.range(..=position).next_back() else {
        return Ok(None);
    };
    let failed = |error: io::Error| StoreError::Failed(error.to_string());
    let file = segment.file.clone();
    let Some(index) = &segment.index else {
        // The segment has no records left out, so the length of the file is not needed.
        let next = segments.range(position.saturating_add(1)..).next();
        let end = next.map_or(written, |(next, _)| *next);
        return Ok(Some(Place {
            file,
            offset: SEGMENT_HEAD as u64 + (position - first),
            available: end.saturating_sub(position),
        }));
    };
    let Some(offset) = rewrite::find(&file, index, log, position).map_err(failed)? else {
        return Ok(None);
    };
    let available = file.len().map_err(failed)?.saturating_sub(offset);
    Ok(Some(Place {
        file,
        offset,
        available,
    }))
}
