//! The thread: one write and one sync for all entries that wait.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use vere_units::Timestamp;

use super::current::Current;
use super::disk::{Disk, random};
use super::gathering::{self, Gathering};
use super::options::ArchiveOptions;
use super::shared::{Job, Shared};
use crate::entry::Entry;
use crate::error::ArchiveError;
use crate::name::{DAY_MINUTES, Day, MINUTE_MILLIS, SegmentName};
use crate::read::{days, segments};

/// Octets of entries in one write. Callers behind them wait for a further sync.
const BATCH_OCTETS_MAX: u64 = 16 << 20;
/// Entries in one write.
const BATCH_ENTRIES_MAX: usize = 4_096;

/// A segment without new entries is ended after this time: its index is then complete, and the disk has all of it.
const IDLE: Duration = Duration::from_secs(60);

/// What the thread does next.
#[derive(Debug)]
enum Work {
    Jobs(Vec<Job>),
    Sync,
    Idle,
    End,
}

/// The state of the thread.
pub(super) struct Writer {
    folder: PathBuf,
    disk: Box<dyn Disk>,
    shared: Arc<Shared>,
    sync_within: Duration,
    segment_octets_max: u64,
    current: Option<Current>,
    /// The minute of the last segment.
    newest: Option<SegmentName>,
    /// Since when octets wait for a sync, and the synced length of the segment.
    unsynced: Option<Instant>,
    synced: u64,
    gathering: Gathering,
    /// The last batch failed; the next failure is not reported again.
    is_failing: bool,
}

impl Writer {
    pub(super) fn new(
        folder: &Path,
        options: &ArchiveOptions,
        disk: Box<dyn Disk>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            disk,
            shared,
            sync_within: options.sync_within,
            segment_octets_max: options.segment_octets_max.as_u64(),
            current: None,
            newest: None,
            unsynced: None,
            synced: 0,
            gathering: Gathering::of(options.sync_within),
            is_failing: false,
        }
    }

    /// Writes until the archive is dropped.
    pub(super) fn run(mut self) {
        // Callers get an error even if this thread ends by a panic.
        let _ended = Ended(Arc::clone(&self.shared));
        loop {
            match self.take() {
                Work::Jobs(jobs) => {
                    self.sync_if_due();
                    self.gathering.brought(jobs.len());
                    self.batch(jobs);
                }
                Work::Sync => self.sync_if_due(),
                Work::Idle => self.close(),
                Work::End => break,
            }
        }
        self.close();
    }

    /// Waits for entries, or for the next sync, or for the end of an idle segment.
    fn take(&self) -> Work {
        let begun = Instant::now();
        let mut state = self.shared.lock();
        while state.jobs.is_empty() {
            if state.stop {
                return Work::End;
            }
            let (left, then) = match (self.unsynced, &self.current) {
                (Some(since), _) => (self.sync_within.saturating_sub(since.elapsed()), Work::Sync),
                (None, Some(_)) => (IDLE.saturating_sub(begun.elapsed()), Work::Idle),
                (None, None) => (Duration::MAX, Work::Idle),
            };
            if left.is_zero() {
                return then;
            }
            let waited = self.shared.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if self.gathering.is_due() && !state.stop {
            drop(state);
            // Not a wait for the condition: each caller would wake the thread.
            std::thread::sleep(gathering::TIME);
            state = self.shared.lock();
        }
        Work::Jobs(batch_of(&mut state.jobs))
    }

    /// Writes entries; those of a minute in one write.
    fn batch(&mut self, jobs: Vec<Job>) {
        let mut run: Vec<Job> = Vec::with_capacity(jobs.len());
        for job in jobs {
            let minute = self.minute_of(job.entry.at);
            if self.newest != Some(minute) || self.is_full() {
                self.write(std::mem::take(&mut run));
                self.close();
                self.newest = Some(minute);
            }
            run.push(job);
        }
        self.write(run);
    }

    fn is_full(&self) -> bool {
        let length = self.current.as_ref().map(Current::length);
        length.is_some_and(|length| length >= self.segment_octets_max)
    }

    /// The minute for a time of arrival. A clock that went back leads to the newest segment; but where the newest segment
    /// is more than a day ahead, the clock was wrong before.
    fn minute_of(&mut self, at: Timestamp) -> SegmentName {
        let minute = SegmentName::of(at);
        if self.newest.is_none() {
            self.newest = newest_on_disk(&self.folder, minute);
        }
        match self.newest {
            Some(newest) if newest > minute && minutes_between(minute, newest) <= DAY_MINUTES => {
                newest
            }
            _ => minute,
        }
    }

    fn write(&mut self, run: Vec<Job>) {
        if run.is_empty() {
            return;
        }
        let entries: Vec<&Entry> = run.iter().map(|job| &job.entry).collect();
        let result = self.write_and_sync(&entries);
        let (count, octets) = (
            entries.len() as u64,
            entries.iter().map(|entry| entry.octets_len()).sum(),
        );
        let counts = &self.shared.counts;
        if result.is_ok() {
            add(&counts.entries, count);
            add(&counts.octets, octets);
        } else {
            add(&counts.failed, count);
        }
        self.report(&result);
        for Job { entry, done, room } in run {
            drop((entry, room));
            // The caller may have gone; the entry stays.
            let _ = done.send(result.clone());
        }
        if let Some(current) = &mut self.current {
            current.publish();
        }
    }

    fn write_and_sync(&mut self, entries: &[&Entry]) -> Result<(), ArchiveError> {
        let mut current = match self.current.take() {
            Some(current) => current,
            None => self.begin()?,
        };
        match current.write(entries) {
            Ok(()) => {}
            Err((error, is_usable)) => {
                match is_usable {
                    true => self.current = Some(current),
                    false => current.abandon(None),
                }
                return Err(error);
            }
        }
        self.current = Some(current);
        self.unsynced.get_or_insert_with(Instant::now);
        if self.sync_within.is_zero() {
            return self.sync();
        }
        Ok(())
    }

    fn sync_if_due(&mut self) {
        let due = self
            .unsynced
            .is_some_and(|since| since.elapsed() >= self.sync_within);
        if due {
            let result = self.sync();
            self.report(&result);
        }
    }

    /// Syncs the segment. After a failure the segment is given up from the last synced entry on.
    fn sync(&mut self) -> Result<(), ArchiveError> {
        self.unsynced = None;
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        let begun = Instant::now();
        let result = current.sync(self.disk.as_ref(), &self.folder);
        let counts = &self.shared.counts;
        add(&counts.syncs, 1);
        add(
            &counts.sync_micros,
            u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        );
        match result {
            Ok(()) => {
                self.synced = current.length();
                self.current = Some(current);
                Ok(())
            }
            Err(error) => {
                // Entries that were answered stay as they are.
                current.abandon(self.sync_within.is_zero().then_some(self.synced));
                Err(error)
            }
        }
    }

    /// Begins the next part of the newest minute.
    fn begin(&mut self) -> Result<Current, ArchiveError> {
        self.synced = 0;
        let minute = self
            .newest
            .unwrap_or_else(|| SegmentName::of(Timestamp::ZERO));
        let failed = |error| ArchiveError::of(&self.folder, &error);
        let same = |name: &SegmentName| name.with_part(0) == minute.with_part(0);
        let known = segments(&self.folder, minute.day());
        let known = known.map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        let last = known.into_iter().filter(same).map(SegmentName::part).max();
        let part = last.map_or(0, |part| part.saturating_add(1));
        let nonce = random().map_err(failed)?;
        Current::begin(
            self.disk.as_ref(),
            &self.folder,
            minute.with_part(part),
            nonce,
        )
    }

    fn close(&mut self) {
        self.unsynced = None;
        if let Some(current) = self.current.take() {
            current.close(self.disk.as_ref(), &self.folder);
        }
    }

    /// Reports the first failure, and the first success behind it.
    fn report(&mut self, result: &Result<(), ArchiveError>) {
        match result {
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                tracing::error!(%error, "archive refuses entries");
            }
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                tracing::info!(folder = %self.folder.display(), "archive accepts entries again");
            }
            _ => {}
        }
    }
}

/// The oldest entries, as many as one write takes.
fn batch_of(jobs: &mut VecDeque<Job>) -> Vec<Job> {
    let (mut octets, mut count) = (0, 0);
    for job in jobs.iter() {
        if count > 0 && (octets >= BATCH_OCTETS_MAX || count >= BATCH_ENTRIES_MAX) {
            break;
        }
        octets += job.entry.octets_len();
        count += 1;
    }
    jobs.drain(..count).collect()
}

/// Refuses the entries that wait, and all further ones, when the thread ends.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        state.jobs.clear();
    }
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// The newest minute on the disk that is at most a day ahead. Directories that cannot be read are like empty ones: the
/// next write meets the same error.
fn newest_on_disk(folder: &Path, minute: SegmentName) -> Option<SegmentName> {
    let latest = minute.start() + Duration::from_millis(DAY_MINUTES * MINUTE_MILLIS);
    let mut days = days(folder).unwrap_or_default();
    days.retain(|day| *day <= Day::of(latest));
    let mut names = days
        .into_iter()
        .rev()
        .flat_map(|day| segments(folder, day).unwrap_or_default().into_iter().rev());
    names
        .find(|name| name.start() <= latest)
        .map(|name| name.with_part(0))
}

fn minutes_between(earlier: SegmentName, later: SegmentName) -> u64 {
    let between = later.start().saturating_since(earlier.start());
    between.as_secs() / 60
}
