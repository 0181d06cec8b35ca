//! The handle, and the thread that writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use vere_units::ByteSize;

use super::line::{Line, encoded};
use crate::clock::wall_clock;
use crate::error::OpenError;
use crate::keep::{Keeper, Kept};
use crate::name::Day;
use crate::stable::sync_folder;

/// The version of the lines.
const VERSION: u32 = 1;
/// The thread is woken before a second has passed when this much waits.
const WAKE_OCTETS: usize = 256 << 10;
/// Time between two syncs, and the longest time of a line in memory.
const FLUSH: Duration = Duration::from_secs(1);

/// How the audit log is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditOptions {
    /// Files of whole days older than this are removed: at the opening, and once an hour. Zero: nothing is removed.
    pub keep: Duration,
    /// Octets of lines in memory; further lines are dropped and counted. Default 16 MiB.
    pub waiting_octets_max: ByteSize,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            keep: Duration::ZERO,
            waiting_octets_max: ByteSize::mib(16),
        }
    }
}

/// The audit log, open for writing. Dropping the handle writes what waits and ends the thread.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    waiting_octets_max: usize,
    thread: Option<JoinHandle<()>>,
    _keeper: Keeper,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines, by the days of their files, in order.
    lines: Vec<(Day, Vec<u8>)>,
    /// The number of lines, and their octets.
    count: u64,
    octets: usize,
    /// Lines that were not written, since the last line that says so, and altogether.
    dropped: u64,
    dropped_total: u64,
    /// Numbers of batches taken and written, so that `flush` can wait for its own.
    taken: u64,
    done: u64,
    hurry: bool,
    stop: bool,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Audit {
    /// Opens the log in a directory, which is made if it is missing, and starts the threads.
    ///
    /// # Errors
    ///
    /// The directory cannot be made or written; no thread can be started.
    pub fn open(folder: &Path, options: &AuditOptions) -> Result<Self, OpenError> {
        std::fs::create_dir_all(folder).map_err(OpenError::at(folder))?;
        let shared = Arc::new(Shared::default());
        let mut writer = Writer {
            folder: folder.to_owned(),
            shared: Arc::clone(&shared),
            file: None,
            synced: Instant::now(),
            is_unsynced: false,
            is_failing: false,
        };
        let now = wall_clock();
        let opened = Opened {
            at: now.to_string(),
            ev: "opened",
            version: VERSION,
        };
        let line = encoded(&opened).unwrap_or_default();
        let first = writer.append(&[(Day::of(now), line)]);
        first.map_err(OpenError::at(folder))?;
        let keeper = Keeper::start(Kept::Files(folder.to_owned()), options.keep, wall_clock);
        let keeper = keeper.map_err(OpenError::at(folder))?;
        let thread = Builder::new()
            .name("audit".to_owned())
            .spawn(move || writer.run());
        Ok(Self {
            shared,
            waiting_octets_max: options.waiting_octets_max.as_usize(),
            thread: Some(thread.map_err(OpenError::at(folder))?),
            _keeper: keeper,
        })
    }

    /// Takes a line. Never waits for the disk: when too much waits already, the line is dropped and counted.
    pub fn add(&self, line: &Line<'_>) {
        let octets = line.encode();
        let mut state = self.shared.lock();
        let room = self.waiting_octets_max.saturating_sub(state.octets);
        let Some(octets) = octets.filter(|octets| octets.len() <= room && !state.ended) else {
            state.dropped += 1;
            state.dropped_total += 1;
            return;
        };
        let before = state.octets;
        state.octets += octets.len();
        let after = state.octets;
        state.count += 1;
        let day = Day::of(line.at);
        match state.lines.last_mut() {
            Some((last, lines)) if *last == day => lines.extend_from_slice(&octets),
            _ => state.lines.push((day, octets)),
        }
        drop(state);
        // The first line starts the second, a full buffer ends it.
        if before == 0 || (before < WAKE_OCTETS && after >= WAKE_OCTETS) {
            self.shared.work.notify_one();
        }
    }

    /// Lines that were not written since the opening: no room in memory, or a failing disk.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.shared.lock().dropped_total
    }

    /// Waits until every line added before is on stable storage, or dropped. Blocks the thread.
    pub fn flush(&self) {
        let mut state = self.shared.lock();
        state.hurry = true;
        let wanted = state.taken + 1;
        self.shared.work.notify_one();
        while state.done < wanted && !state.ended {
            let waited = self.shared.written.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// The first line after an opening.
#[derive(Debug, Serialize)]
struct Opened {
    at: String,
    ev: &'static str,
    version: u32,
}

/// Lines before this line were dropped.
#[derive(Debug, Serialize)]
struct Dropped {
    at: String,
    ev: &'static str,
    count: u64,
}

struct Writer {
    folder: PathBuf,
    shared: Arc<Shared>,
    /// The file of the newest day.
    file: Option<(Day, File)>,
    synced: Instant,
    is_unsynced: bool,
    /// The last batch failed; the next failure is not reported again.
    is_failing: bool,
}

/// What the thread takes at once.
struct Batch {
    lines: Vec<(Day, Vec<u8>)>,
    count: u64,
    dropped: u64,
    hurry: bool,
}

impl Writer {
    fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.shared));
        while let Some(mut batch) = self.take() {
            if batch.dropped > 0 {
                let now = wall_clock();
                let line = Dropped {
                    at: now.to_string(),
                    ev: "dropped",
                    count: batch.dropped,
                };
                batch
                    .lines
                    .push((Day::of(now), encoded(&line).unwrap_or_default()));
            }
            let mut result = self.append(&batch.lines);
            if result.is_ok() && (batch.hurry || self.synced.elapsed() >= FLUSH) {
                result = self.sync();
            }
            let mut state = self.shared.lock();
            if result.is_err() {
                state.dropped += batch.dropped + batch.count;
                state.dropped_total += batch.count;
            }
            state.done += 1;
            drop(state);
            self.shared.written.notify_all();
            self.report(&result);
        }
        let _ = self.sync();
    }

    /// Waits for lines, then for a second or a full buffer.
    fn take(&self) -> Option<Batch> {
        let mut state = self.shared.lock();
        let wait = |state, left| {
            let waited = self.shared.work.wait_timeout(state, left);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        while state.lines.is_empty() && !state.stop && !state.hurry {
            // Lines of a full buffer may have been written within the second.
            let left = match self.is_unsynced {
                true => FLUSH.saturating_sub(self.synced.elapsed()),
                false => Duration::MAX,
            };
            if left.is_zero() {
                break;
            }
            state = wait(state, left);
        }
        let due = Instant::now() + FLUSH;
        while !state.lines.is_empty() && state.octets < WAKE_OCTETS && !state.stop && !state.hurry {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = wait(state, left);
        }
        if state.stop && state.lines.is_empty() && state.dropped == 0 && !state.hurry {
            return None;
        }
        let dropped = match state.stop && self.is_failing && state.lines.is_empty() {
            // The disk has refused these lines already.
            true => return None,
            false => std::mem::take(&mut state.dropped),
        };
        state.taken += 1;
        state.octets = 0;
        Some(Batch {
            lines: std::mem::take(&mut state.lines),
            count: std::mem::take(&mut state.count),
            dropped,
            hurry: std::mem::take(&mut state.hurry),
        })
    }

    /// Appends lines to the files of their days. A line of an earlier day goes into the newest file: the clock went
    /// back, or the line waited over midnight.
    fn append(&mut self, lines: &[(Day, Vec<u8>)]) -> io::Result<()> {
        let mut buffer = Vec::new();
        for (day, line) in lines {
            if self.file.as_ref().is_none_or(|(newest, _)| newest < day) {
                self.write(&mut buffer)?;
                self.sync()?;
                self.file = Some((*day, open(&self.folder, *day)?));
            }
            buffer.extend_from_slice(line);
        }
        self.write(&mut buffer)
    }

    fn write(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Some((_, file)) = &mut self.file else {
            return Ok(());
        };
        if buffer.is_empty() {
            return Ok(());
        }
        let before = file.stream_position()?;
        self.is_unsynced = true;
        if let Err(error) = file.write_all(buffer) {
            // No half a line; where even this fails, the next opening ends the line.
            let _ = file
                .set_len(before)
                .and_then(|()| file.seek(SeekFrom::Start(before)));
            return Err(error);
        }
        buffer.clear();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.synced = Instant::now();
        if !std::mem::take(&mut self.is_unsynced) {
            return Ok(());
        }
        self.file
            .as_ref()
            .map_or(Ok(()), |(_, file)| file.sync_data())
    }

    /// Reports the first failure, and the first success behind it.
    fn report(&mut self, result: &io::Result<()>) {
        let folder = self.folder.display();
        match result {
            Err(error) if !self.is_failing => {
                tracing::error!(%folder, %error, "lines of the audit log are dropped");
            }
            Ok(()) if self.is_failing => tracing::info!(%folder, "audit log is written again"),
            _ => {}
        }
        self.is_failing = result.is_err();
    }
}

/// Tells callers of `flush` that the thread has ended.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.written.notify_all();
    }
}

/// Opens the file of a day at its end. A line that a crash has cut is ended.
fn open(folder: &Path, day: Day) -> io::Result<File> {
    let path = folder.join(format!("{day}.log"));
    let options = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .open(&path);
    let mut file = options?;
    sync_folder(folder)?;
    let length = file.seek(SeekFrom::End(0))?;
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
