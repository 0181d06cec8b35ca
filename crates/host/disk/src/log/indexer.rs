//! Writes indexes, and verifies segments that were not read at the start, on a separate thread.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use vere_ports::spool_log::LogOutliner;
use vere_ports::storage::{Storage, StorageFile as _};

use super::aside::is_unreadable;
use super::format::segment_name;
use super::index::{self, NoIndex, Sealed};
use super::sync::Syncing;
use super::threads::Weak;

/// Octets of old segments that are looked through in a second, for want of anything else to do.
const SCRUBBED_PER_SECOND: u64 = 64 << 20;

/// A job for a segment.
pub(super) struct IndexJob<S: Storage> {
    /// Weak, so that the job does not keep an abandoned log alive.
    pub(super) log: Weak<Syncing<S>>,
    pub(super) segment: Sealed,
    /// Whether to verify a segment against the index by which the log was opened.
    pub(super) scrub: bool,
}

/// The queue of index jobs.
pub(super) type IndexJobs<S> = Sender<IndexJob<S>>;

/// How the segments of logs get indexes.
#[derive(Debug, Clone)]
pub(super) struct Indexing<S: Storage> {
    /// Octets of the newest full segments without an index: most segments are removed soon after they
    /// are full.
    pub(super) behind: u64,
    pub(super) jobs: IndexJobs<S>,
}

/// The segments of a log with an index, and the segments waiting for an index.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    waiting: VecDeque<Sealed>,
    octets: u64,
    with: BTreeSet<u64>,
}

impl Indexed {
    /// A segment is full.
    pub(super) fn add(&mut self, segment: Sealed) {
        self.octets += segment.octets();
        self.waiting.push_back(segment);
    }

    /// A segment has an index.
    pub(super) fn note(&mut self, number: u64) {
        self.with.insert(number);
    }

    /// A segment is not needed any more. Records the removal of a segment, and returns whether the
    /// segment had an index.
    pub(super) fn forget(&mut self, number: u64) -> bool {
        while let Some(first) = self.waiting.front().filter(|first| first.number <= number) {
            self.octets -= first.octets();
            self.waiting.pop_front();
        }
        self.with.remove(&number)
    }

    /// The next segment to index: synced, and full long enough ago.
    pub(super) fn next(&mut self, behind: u64, synced: u64) -> Option<Sealed> {
        if self.octets <= behind {
            return None;
        }
        let first = self.waiting.pop_front_if(|first| first.end <= synced)?;
        self.octets -= first.octets();
        Some(first)
    }
}

impl<S: Storage> IndexJob<S> {
    pub(super) fn run(self, outliner: &LogOutliner) {
        let segment = self.segment;
        let Some(log) = self.log.upgrade() else {
            return;
        };
        if !log.needs(segment.number) {
            return;
        }
        let name = segment_name(segment.number);
        let file = log.storage().open(&name).map_err(NoIndex::Io);
        let built = file.and_then(|file| {
            let built = index::build(&file, segment, outliner);
            // A segment that has lasted until now waits for a start: with an index, nobody reads the segment before that.
            // A cache full of such segments costs each write a search for memory.
            file.set_aside();
            built
        });
        // A segment that is not needed any more is renamed and reused.
        if !log.needs(segment.number) {
            return;
        }
        match built {
            Ok(_) if self.scrub => {}
            Ok(index) => {
                log.note_index(segment.number);
                let written = index.write(log.storage(), segment, outliner.version);
                if let Err(error) = written {
                    tracing::debug!(file = name, %error, "cannot write the index of a log segment");
                    drop_index(log.storage(), segment.number);
                } else if !log.needs(segment.number) {
                    drop_index(log.storage(), segment.number);
                }
            }
            Err(NoIndex::Unreadable(error)) => {
                tracing::error!(file = name, error = error.0, "log segment gets no index");
            }
            // A segment without an index is read whole, once reading is possible again.
            Err(NoIndex::Io(error)) if !is_unreadable(&error) => {
                tracing::warn!(file = name, %error, "log segment gets no index");
            }
            Err(reason) => {
                // The next start has to find the damage too.
                drop_index(log.storage(), segment.number);
                log.damaged(format!("{name}: {reason}"));
            }
        }
    }
}

fn drop_index<S: Storage>(storage: &S, number: u64) {
    if let Err(error) = index::remove(storage, number) {
        tracing::warn!(segment = number, %error, "cannot remove the index of a log segment");
    }
}

/// Runs jobs until every log is gone: new indexes at once, the rest at its leisure.
pub(super) fn run_indexing<S: Storage>(jobs: &Receiver<IndexJob<S>>, outliner: &LogOutliner) {
    let mut scrubs: VecDeque<IndexJob<S>> = VecDeque::new();
    let mut next = Instant::now();
    loop {
        let job = if scrubs.is_empty() {
            jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            jobs.recv_timeout(next.saturating_duration_since(Instant::now()))
        };
        match job {
            Ok(job) if job.scrub => scrubs.push_back(job),
            Ok(job) => job.run(outliner),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(job) = scrubs.pop_front() {
                    let octets = job.segment.octets();
                    job.run(outliner);
                    let ms = octets.saturating_mul(1000) / SCRUBBED_PER_SECOND;
                    next = Instant::now() + Duration::from_millis(ms);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Runs the waiting jobs.
#[cfg(test)]
pub(super) fn run_waiting<S: Storage>(jobs: &Receiver<IndexJob<S>>, outliner: &LogOutliner) {
    while let Ok(job) = jobs.try_recv() {
        job.run(outliner);
    }
}

/// Removes the indexes of missing segments.
pub(super) fn remove_leftovers<S: Storage>(
    storage: &S,
    names: &[String],
    is_there: impl Fn(u64) -> bool,
) -> io::Result<()> {
    let numbers = names.iter().filter_map(|name| index::index_number(name));
    for number in numbers.filter(|number| !is_there(*number)) {
        index::remove(storage, number)?;
    }
    Ok(())
}
