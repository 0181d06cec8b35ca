//! A log being written.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender};

use vere_ports::spool_log::{LogError, LogPosition, LogRead, LogRoom, LogStretch, SpoolLog};
use vere_ports::storage::{Storage, StorageFile};

use super::format::{Entry, Head};
use super::index::Sealed;
use super::reading::ReadJob;
use super::reserve::Reserve;
use super::sync::{Jobs, Syncing};
use super::threads::Arc;

/// A segment has at least this multiple of the octets of its head in entries, even beyond the segment
/// length: the head of a group with 100,000 queues is longer than the usual segment.
const ENTRIES_BY_HEAD: u64 = 8;

/// The log of a group over a directory `S`.
#[derive(Debug)]
pub struct RedoLog<S: Storage> {
    pub(super) log_id: u64,
    pub(super) segments: VecDeque<Segment>,
    /// The newest segment's file.
    pub(super) file: S::File,
    /// The end of the entries in the file. The file may be longer.
    pub(super) offset: u64,
    pub(super) position: u64,
    /// The octets of the newest segment's head, if that segment was begun after the log was opened.
    pub(super) head: u64,
    /// The position of the newest segment.
    pub(super) begun: u64,
    pub(super) segment_len: u64,
    pub(super) syncing: Arc<Syncing<S>>,
    pub(super) jobs: Jobs<S>,
    pub(super) reserve: Arc<Reserve<S>>,
    pub(super) reads: Sender<ReadJob<S>>,
    /// The queue of results from the reading thread.
    pub(super) done: (Sender<LogRead>, Receiver<LogRead>),
}

/// A segment and the octets of its file; for the newest segment, the octets at the beginning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) len: u64,
}

impl<S: Storage> RedoLog<S> {
    /// Writes both parts at the end of the newest segment, with the reserve if it must be.
    fn write(&mut self, parts: [&[u8]; 2]) -> Result<(), LogError> {
        self.check()?;
        let mut result = self.file.write_at(parts, self.offset);
        if is_full(&result) && self.reserve.release() {
            result = self.file.write_at(parts, self.offset);
        }
        match result {
            Ok(()) => {
                self.offset += (parts[0].len() + parts[1].len()) as u64;
                Ok(())
            }
            // A part of the entry may be written; the part is removed, so that no entry follows half
            // an entry.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                match self.file.truncate(self.offset) {
                    Ok(()) => Err(LogError::Full),
                    Err(error) => Err(self.fail(&error)),
                }
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn check(&self) -> Result<(), LogError> {
        match self.syncing.failure() {
            Some(failure) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    fn fail(&self, error: &io::Error) -> LogError {
        self.syncing.fail(error.to_string());
        LogError::Failed(error.to_string())
    }

    fn oldest(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.number)
    }

    fn queue_job(&self) {
        if self.jobs.send(Arc::clone(&self.syncing)).is_err() {
            self.syncing.fail("the syncing thread is gone".to_owned());
        }
    }
}

fn is_full(result: &io::Result<()>) -> bool {
    matches!(result, Err(error) if error.kind() == io::ErrorKind::StorageFull)
}

impl<S: Storage> SpoolLog for RedoLog<S> {
    fn append(&mut self, entry: &[u8]) -> Result<LogPosition, LogError> {
        let Ok(payload_len) = u32::try_from(entry.len()) else {
            return Err(LogError::Failed("entry is too long".to_owned()));
        };
        let header = Entry {
            log_id: self.log_id,
            position: self.position,
            synced: self.syncing.synced(),
            payload_len,
            payload_crc: vere_checksum::crc32(entry),
        };
        self.write([&header.encode(), entry])?;
        self.position += header.len();
        Ok(LogPosition(self.position))
    }

    fn start_sync(&mut self) {
        if self.syncing.want(self.position, self.oldest()) {
            self.queue_job();
        }
    }

    fn sync_alone(&mut self) {
        if !self.syncing.sync_in_place(self.position, self.oldest()) {
            self.start_sync();
        }
    }

    fn synced(&self) -> Result<LogPosition, LogError> {
        self.check()?;
        Ok(LogPosition(self.syncing.synced()))
    }

    fn newest(&self) -> u64 {
        self.segments.back().map_or(0, |segment| segment.number)
    }

    fn wants_roll(&self) -> bool {
        self.offset
            >= self
                .segment_len
                .max(self.head.saturating_mul(1 + ENTRIES_BY_HEAD))
    }

    fn roll(&mut self, head: &[u8]) -> Result<(), LogError> {
        self.check()?;
        let number = self.newest() + 1;
        let Ok(payload_len) = u32::try_from(head.len()) else {
            return Err(LogError::Failed("head is too long".to_owned()));
        };
        let head_of_file = Head {
            payload_len,
            payload_crc: vere_checksum::crc32(head),
            log_id: self.log_id,
            number,
            position: self.position,
            synced: self.syncing.synced(),
        };
        let file = match self.syncing.begin_segment([&head_of_file.encode(), head]) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Err(LogError::Full),
            Err(error) => return Err(self.fail(&error)),
        };
        if let Some(last) = self.segments.back_mut() {
            last.len = self.offset;
        }
        self.syncing.seal(Sealed {
            log_id: self.log_id,
            number: number - 1,
            position: self.begun,
            end: self.position,
        });
        self.begun = self.position;
        (self.file, self.offset) = (file, head_of_file.entries_at());
        self.head = self.offset;
        self.segments.push_back(Segment {
            number,
            len: self.offset,
        });
        Ok(())
    }

    fn remove_before(&mut self, segment: u64) -> Result<(), LogError> {
        self.check()?;
        let before = self.oldest();
        while self.segments.len() > 1 && self.oldest() < segment {
            self.segments.pop_front();
        }
        if self.oldest() > before {
            self.start_sync();
        }
        Ok(())
    }

    fn keep_house(&mut self) {
        if !self.reserve.is_held() {
            self.syncing.set_scarce(true);
            self.reserve.hold();
            self.syncing.set_scarce(!self.reserve.is_held());
        }
        if self.check().is_ok() && self.syncing.want_mark() {
            self.queue_job();
        }
    }

    fn octets(&self) -> u64 {
        let newest = self.segments.back().map_or(0, |segment| segment.len);
        let all: u64 = self.segments.iter().map(|segment| segment.len).sum();
        all - newest + self.offset
    }

    fn room(&self) -> LogRoom {
        if self.reserve.is_held() {
            LogRoom::Plenty
        } else {
            LogRoom::Reserve
        }
    }
    fn read_back(&mut self, stretch: LogStretch, into: Vec<u8>) {
        let job = ReadJob {
            storage: self.syncing.storage().clone(),
            log_id: self.log_id,
            stretch,
            into,
            done: self.done.0.clone(),
        };
        if let Err(error) = self.reads.send(job) {
            let read = LogRead {
                stretch,
                octets: error.0.into,
                result: Err("the reading thread is gone".to_owned()),
            };
            // Both ends are here.
            let _ = self.done.0.send(read);
        }
    }

    fn poll_read(&mut self) -> Option<LogRead> {
        self.done.1.try_recv().ok()
    }
}
