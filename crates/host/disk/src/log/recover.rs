//! Opens a log: every acknowledged entry is recovered, or the log does not open.
//!
//! Entries are read in order up to the first octets that are not an entry. Such octets are either the end of
//! an interrupted write, or damage. The synced position is recorded in three places: in every later entry,
//! in the heads of later segments, and in the marks. If one of these records says that the place was synced,
//! the octets are damage, and the log stays closed. Otherwise no octet from there on was ever acknowledged,
//! and the rest is cut off.
//!
//! Octets not proven to be synced are then written again in place before the sync: after a failed sync an
//! operating system may treat pages as clean that never reached the disk.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use vere_ports::spool_log::{LogReader, OpenLogError, UnreadableEntry};
use vere_ports::storage::{Storage, StorageFile};

use super::format::{HEAD_LEN, Head, HeadError, MARK_LEN, Mark, segment_name, segment_number};
use super::indexer::{self, Indexing};
use super::octets::{Octets, READ_AT_ONCE, SegmentFile};
use super::reading::ReadJob;
use super::redo::{RedoLog, Segment};
use super::reserve::Reserve;
use super::spares;
use super::sync::{Jobs, MARK_NAME, MARKS_AT, Syncing, write_marks};
use super::threads::Arc;

/// The common parts of all logs of a node.
#[derive(Debug, Clone)]
pub(super) struct Common<S: Storage> {
    pub(super) segment_len: u64,
    /// The longest expected sync that the writing thread may run by itself.
    pub(super) in_place_max: Duration,
    pub(super) jobs: Jobs<S>,
    pub(super) reserve: Arc<Reserve<S>>,
    /// The queue of the reading thread.
    pub(super) reads: Sender<ReadJob<S>>,
    /// The indexing of segments, if enabled.
    pub(super) indexing: Option<Indexing<S>>,
}

/// Begins a log in an empty directory. On return the log is on stable storage.
pub(super) fn create<S: Storage>(
    storage: S,
    common: &Common<S>,
    log_id: u64,
    payload: &[u8],
) -> io::Result<RedoLog<S>> {
    let head = Head {
        payload_len: u32::try_from(payload.len()).map_err(io::Error::other)?,
        payload_crc: vere_checksum::crc32(payload),
        log_id,
        number: 1,
        position: 0,
        synced: 0,
    };
    let file = spares::first(&storage, common.segment_len)?;
    file.write_at([&head.encode(), payload], 0)?;
    file.sync()?;
    let mark = Mark {
        log_id,
        synced: 0,
        serial: 0,
        oldest: 1,
    };
    let mark_file = storage.create(MARK_NAME)?;
    write_marks(&mark_file, mark)?;
    storage.sync()?;
    let segments = VecDeque::from([Segment {
        number: 1,
        len: head.entries_at(),
    }]);
    let syncing = Syncing::new(storage, (mark_file, mark), (1, file.clone()), common);
    Ok(finish(common, syncing, segments, (log_id, file), (0, 0)))
}

/// Makes the log that ends with this segment.
fn finish<S: Storage>(
    common: &Common<S>,
    syncing: Syncing<S>,
    segments: VecDeque<Segment>,
    last: (u64, S::File),
    (begun, position): (u64, u64),
) -> RedoLog<S> {
    let (log_id, file) = last;
    RedoLog {
        log_id,
        offset: segments.back().map_or(0, |segment| segment.len),
        segments,
        file,
        head: 0,
        position,
        begun,
        segment_len: common.segment_len,
        syncing: Arc::new(syncing),
        jobs: common.jobs.clone(),
        reserve: Arc::clone(&common.reserve),
        reads: common.reads.clone(),
        done: channel(),
    }
}

/// Opens and reads a log. On return all octets read are on stable storage.
pub(super) fn open<S: Storage>(
    storage: S,
    path: &Path,
    common: &Common<S>,
    reader: &mut dyn LogReader,
) -> Result<RedoLog<S>, OpenLogError> {
    let mut recovery = Recovery::new(&storage, path)?;
    if let Some(end) = recovery.read(reader)? {
        recovery.cut(&end, common.segment_len)?;
    }
    recovery.write_again()?;
    let Some(last) = recovery.files.last() else {
        return Err(recovery.damaged(&segment_name(recovery.mark.oldest), 0, "file is missing"));
    };
    let mark = Mark {
        synced: recovery.position,
        serial: recovery.mark.serial + 1,
        ..recovery.mark
    };
    let mark_path = path.join(MARK_NAME);
    let mark_file = storage.open(MARK_NAME).map_err(io_error(&mark_path))?;
    write_marks(&mark_file, mark).map_err(io_error(&mark_path))?;
    let newest = (last.number, last.file.clone());
    let syncing = Syncing::new(storage.clone(), (mark_file, mark), newest, common);
    let segment = |file: &SegmentFile<S::File>| Segment {
        number: file.number,
        len: file.len,
    };
    let segments = recovery.files.iter().map(segment).collect();
    let begun = last.head.map_or(recovery.position, |head| head.position);
    let last = (mark.log_id, last.file.clone());
    let ends = (begun, recovery.position);
    let log = finish(common, syncing, segments, last, ends);
    recovery.look_after(&log);
    Ok(log)
}

/// Where the octets stop making sense.
#[derive(Debug)]
struct End {
    /// Which file.
    index: usize,
    offset: u64,
    reason: String,
    /// Whether a partial write follows.
    torn: bool,
}

/// A log being opened.
pub(super) struct Recovery<'a, S: Storage> {
    pub(super) storage: &'a S,
    pub(super) path: PathBuf,
    pub(super) files: Vec<SegmentFile<S::File>>,
    mark: Mark,
    /// The end of the octets read.
    pub(super) position: u64,
    /// All octets before this position were synced, as far as proven.
    pub(super) synced: u64,
    /// Segments whose entries were not read, for there is an index.
    pub(super) unread: Vec<u64>,
}

pub(super) fn io_error(file: &Path) -> impl FnOnce(io::Error) -> OpenLogError {
    let file = file.to_owned();
    move |error| OpenLogError::Io { file, error }
}

impl<'a, S: Storage> Recovery<'a, S> {
    fn new(storage: &'a S, path: &Path) -> Result<Self, OpenLogError> {
        let mark = read_mark(storage, path)?;
        let mut recovery = Self {
            storage,
            path: path.to_owned(),
            files: Vec::new(),
            mark,
            position: 0,
            synced: mark.synced,
            unread: Vec::new(),
        };
        let names = storage.list().map_err(io_error(path))?;
        for name in &names {
            let Some(number) = segment_number(name) else {
                continue;
            };
            recovery.add(number, name.clone())?;
        }
        recovery.files.sort_by_key(|file| file.number);
        let there = |number| recovery.files.iter().any(|file| file.number == number);
        indexer::remove_leftovers(storage, &names, there).map_err(io_error(path))?;
        match recovery.files.first() {
            Some(first) if first.number == mark.oldest => Ok(recovery),
            _ => Err(recovery.damaged(&segment_name(mark.oldest), 0, "file is missing")),
        }
    }

    fn add(&mut self, number: u64, name: String) -> Result<(), OpenLogError> {
        let at = self.path.join(&name);
        if number < self.mark.oldest {
            // The process ended before the file was removed.
            return self.storage.remove(&name).map_err(io_error(&at));
        }
        let file = self.storage.open(&name).map_err(io_error(&at))?;
        let len = file.len().map_err(io_error(&at))?;
        self.files.push(SegmentFile {
            number,
            name,
            file,
            file_len: len,
            len,
            head: None,
        });
        Ok(())
    }

    fn damaged(&self, name: &str, offset: u64, reason: &str) -> OpenLogError {
        OpenLogError::Damaged {
            file: self.path.join(name),
            offset,
            reason: reason.to_owned(),
        }
    }

    /// Reads all segments; returns the place of the first octets that are not an entry, unless that place is
    /// damage.
    fn read(&mut self, reader: &mut dyn LogReader) -> Result<Option<End>, OpenLogError> {
        for index in 0..self.files.len() {
            if let Some(end) = self.read_segment(index, reader)? {
                return self.judge(end).map(Some);
            }
        }
        if self.position < self.synced {
            let last = self
                .files
                .last()
                .map_or((segment_name(1), 0), |f| (f.name.clone(), f.len));
            return Err(self.damaged(&last.0, last.1, "the file ends before its synced position"));
        }
        Ok(None)
    }

    fn read_segment(
        &mut self,
        index: usize,
        reader: &mut dyn LogReader,
    ) -> Result<Option<End>, OpenLogError> {
        let segment = self.files[index].clone();
        let at = self.path.join(&segment.name);
        let end = |offset: u64, reason: &str| {
            Ok(Some(End {
                index,
                offset,
                reason: reason.to_owned(),
                torn: false,
            }))
        };
        let Some(head) = self.read_head(index)? else {
            return end(0, "the head belongs to another log");
        };
        if index == 0 {
            // The segments before were removed, always after a sync beyond their end.
            self.position = head.position;
        } else if head.number != self.files[index - 1].number + 1 {
            return self.ends_early(index - 1, "the next segment is missing");
        } else if head.position != self.position {
            return self.ends_early(index - 1, "entries are missing at the end");
        }
        let mut first = Octets::new(&segment.file, head.entries_at().min(segment.file_len));
        let payload = first
            .at(HEAD_LEN as u64, u64::from(head.payload_len))
            .map_err(io_error(&at))?
            .filter(|payload| vere_checksum::crc32(payload) == head.payload_crc);
        let Some(payload) = payload else {
            return end(0, "head is damaged");
        };
        let unreadable = |offset: u64, error: UnreadableEntry| OpenLogError::Unreadable {
            file: at.clone(),
            offset,
            reason: error.0,
        };
        reader
            .head(head.number, payload)
            .map_err(|error| unreadable(0, error))?;
        self.files[index].head = Some(head);
        self.synced = self.synced.max(head.synced);
        if self.outline_segment(index, reader)? {
            return Ok(None);
        }
        let mut octets = Octets::new(&segment.file, segment.file_len);
        let mut offset = head.entries_at();
        while offset < segment.file_len {
            let entry = octets
                .entry(offset, self.mark.log_id)
                .map_err(io_error(&at))?;
            let Some((entry, payload)) = entry.filter(|(e, _)| e.position == self.position) else {
                // The next segment records the end of this segment; the file may be longer.
                match self.follower(index)? {
                    Ok(next) if next.position == self.position => break,
                    Ok(_) => return end(offset, "entry is damaged"),
                    Err(reason) => return end(offset, reason),
                }
            };
            reader
                .entry(head.number, payload)
                .map_err(|error| unreadable(offset, error))?;
            self.synced = self.synced.max(entry.synced);
            offset += entry.len();
            self.position += entry.len();
        }
        self.files[index].len = offset;
        Ok(None)
    }

    /// The head of the following segment, or the reason why there is none.
    pub(super) fn follower(
        &self,
        index: usize,
    ) -> Result<Result<Head, &'static str>, OpenLogError> {
        let number = self.files[index].number;
        match self.files.get(index + 1) {
            Some(next) if next.number != number + 1 => Ok(Err("the next segment is missing")),
            Some(_) => Ok(self.read_head(index + 1)?.ok_or("entry is damaged")),
            None => Ok(Err("entry is damaged")),
        }
    }

    fn ends_early(&self, index: usize, reason: &str) -> Result<Option<End>, OpenLogError> {
        let offset = self.files[index].len;
        Ok(Some(End {
            index,
            offset,
            reason: reason.to_owned(),
            torn: false,
        }))
    }

    /// The head of a file; `None` when the head is not of this log, or belongs to the file's former segment.
    fn read_head(&self, index: usize) -> Result<Option<Head>, OpenLogError> {
        let file = self.path.join(&self.files[index].name);
        let mut head = [0; HEAD_LEN];
        if self.files[index].file_len < HEAD_LEN as u64 {
            return Ok(None);
        }
        let read = self.files[index].file.read_at(&mut head, 0);
        read.map_err(io_error(&file))?;
        match Head::decode(&head) {
            Ok(head) => {
                let ours =
                    head.log_id == self.mark.log_id && head.number == self.files[index].number;
                Ok(ours.then_some(head))
            }
            Err(HeadError::Version(version)) => Err(OpenLogError::Version { file, version }),
            Err(HeadError::Damaged) => Ok(None),
        }
    }

    /// Decides between damage and the end of the writes.
    fn judge(&mut self, mut end: End) -> Result<End, OpenLogError> {
        let mut synced = self.synced;
        let mut headless = false;
        for index in end.index..self.files.len() {
            let segment = self.files[index].clone();
            let mut octets = Octets::new(&segment.file, segment.file_len);
            let head = self.read_head(index)?;
            synced = synced.max(head.map_or(0, |head| head.synced));
            let from = if index == end.index { end.offset } else { 0 };
            let found = octets
                .search(from, self.mark.log_id, head)
                .map_err(|error| OpenLogError::Io {
                    file: self.path.join(&segment.name),
                    error,
                })?;
            synced = synced.max(found.synced);
            let newer = found.end > self.position;
            headless |= newer && !end.torn && index == end.index + 1 && head.is_none();
            end.torn |= newer;
        }
        // The first segment was synced before the log existed.
        if synced > self.position || end.index == 0 && self.files[0].head.is_none() {
            if headless {
                // This segment ends here, and only the head of the next segment is missing.
                let name = &self.files[end.index + 1].name;
                return Err(self.damaged(name, 0, "the head belongs to another log"));
            }
            return Err(self.damaged(&self.files[end.index].name, end.offset, &end.reason));
        }
        Ok(end)
    }

    /// Cuts off octets that were never synced. No such octet may remain: behind a new entry of the same
    /// length, the old octets would be taken for the next entry. Octets behind the end of the segment that
    /// becomes the last must not remain either, since the removed head marked the end.
    fn cut(&mut self, end: &End, segment_len: u64) -> Result<(), OpenLogError> {
        let keep = if self.files[end.index].head.is_some() {
            end.index + 1
        } else {
            end.index
        };
        for gone in self.files.drain(keep..) {
            let at = self.path.join(&gone.name);
            self.storage.remove(&gone.name).map_err(io_error(&at))?;
        }
        let Some(last) = self.files.last_mut() else {
            return Ok(());
        };
        let at = self.path.join(&last.name);
        if keep > end.index {
            if end.torn {
                let (from, to) = (end.offset, last.len);
                tracing::warn!(file = %at.display(), from, to, "cut torn tail");
            }
            last.len = end.offset;
        }
        last.wipe(last.len, spares::file_len(segment_len))
            .map_err(io_error(&at))
    }

    /// Writes and syncs again the octets not proven to be synced.
    fn write_again(&self) -> Result<(), OpenLogError> {
        for segment in &self.files {
            let Some(head) = segment.head else { continue };
            let at = self.path.join(&segment.name);
            let end = head.position + (segment.len - head.entries_at());
            if end < self.synced {
                continue;
            }
            let proven = self.synced.saturating_sub(head.position);
            let from = if head.position >= self.synced {
                0
            } else {
                head.entries_at() + proven
            };
            let mut octets = Octets::new(&segment.file, segment.len);
            let mut offset = from;
            while offset < segment.len {
                let part = READ_AT_ONCE.min(segment.len - offset);
                let octets = octets
                    .at(offset, part)
                    .map_err(io_error(&at))?
                    .unwrap_or_default();
                segment
                    .file
                    .write_at([octets, &[]], offset)
                    .map_err(io_error(&at))?;
                offset += part;
            }
            segment.file.sync().map_err(io_error(&at))?;
        }
        self.storage.sync().map_err(io_error(&self.path))
    }
}

/// The newer of the readable marks.
fn read_mark<S: Storage>(storage: &S, path: &Path) -> Result<Mark, OpenLogError> {
    let at = path.join(MARK_NAME);
    let damaged = |reason: &str| OpenLogError::Damaged {
        file: at.clone(),
        offset: 0,
        reason: reason.to_owned(),
    };
    let file = match storage.open(MARK_NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(damaged("file is missing"));
        }
        other => other.map_err(io_error(&at))?,
    };
    let mut newest: Option<Mark> = None;
    for offset in MARKS_AT {
        let mut octets = [0; MARK_LEN];
        match file.read_at(&mut octets, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => continue,
            other => other.map_err(io_error(&at))?,
        }
        let mark = Mark::decode(&octets);
        let serial = |mark: Option<Mark>| mark.map(|mark| mark.serial);
        if serial(mark) > serial(newest) {
            newest = mark;
        }
    }
    newest.ok_or_else(|| damaged("neither mark can be read"))
}
