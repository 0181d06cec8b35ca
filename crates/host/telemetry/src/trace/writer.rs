//! The handle that accepts events, and the thread that writes the events.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::Event;
use super::encode;
use super::files::Files;
use super::threads::{Arc, Builder, Condvar, JoinHandle, Mutex, MutexGuard};

/// The writer is woken before the flush interval ends when this much waits.
const WAKE_OCTETS: usize = 256 * 1024;

/// The directory of the trace and its limits.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The folder; made when missing.
    pub dir: PathBuf,
    /// Octets after which a file is closed and the next begun. Default 64 MiB.
    pub segment_octets_max: u64,
    /// Octets of all files together; the oldest file goes first. Default 1 GiB.
    pub retained_octets_max: u64,
    /// Longest time an event waits in memory. Default 200 ms.
    pub flush_interval: Duration,
    /// Octets that may wait for the disk; events beyond are counted as lost. Default 16 MiB.
    pub pending_octets_max: usize,
}

impl TraceOptions {
    /// The defaults for a folder.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            segment_octets_max: 64 * 1024 * 1024,
            retained_octets_max: 1024 * 1024 * 1024,
            flush_interval: Duration::from_millis(200),
            pending_octets_max: 16 * 1024 * 1024,
        }
    }
}

/// The trace log could not be opened: a local resource failed.
#[derive(Debug)]
pub struct OpenError {
    /// The folder of the trace.
    pub dir: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot open the trace log in {}: {}",
            self.dir.display(),
            self.source
        )
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The trace, open for writing. Clones write to the same files; dropping the last clone writes the
/// waiting events and ends the thread.
#[derive(Clone, Debug)]
pub struct TraceLog {
    owner: Arc<WriterThread>,
}

#[derive(Debug)]
struct WriterThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    pending_octets_max: usize,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something waits, or the log is to stop.
    work: Condvar,
    /// A buffer was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    lost: u64,
    lost_total: u64,
    /// Numbers of buffers handed over and of buffers written, so that `flush` can wait for its own
    /// buffer.
    taken: u64,
    done: u64,
    hurry: bool,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock; the state is consistent in any case.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceLog {
    /// Opens the newest file of the folder for appending, or begins one, and starts the writer.
    ///
    /// # Errors
    /// The folder or file cannot be made or opened, or no thread can be started.
    pub fn open(options: TraceOptions) -> Result<Self, OpenError> {
        let TraceOptions {
            dir,
            segment_octets_max,
            retained_octets_max,
            ..
        } = options;
        let failed = |source| OpenError {
            dir: dir.clone(),
            source,
        };
        let files =
            Files::open(dir.clone(), segment_octets_max, retained_octets_max).map_err(failed)?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            files,
            dir: dir.clone(),
            interval: options.flush_interval,
            failing: false,
        };
        let thread = Builder::new()
            .name("trace".to_owned())
            .spawn(move || writer.run())
            .map_err(failed)?;
        let owner = WriterThread {
            shared,
            thread: Mutex::new(Some(thread)),
            pending_octets_max: options.pending_octets_max,
        };
        Ok(Self {
            owner: Arc::new(owner),
        })
    }

    /// Takes one event. Never waits for the disk; when too much waits already, the event is
    /// counted as lost.
    pub fn append(&self, event: &Event<'_>) {
        let mut state = self.owner.shared.lock();
        if state.pending.len() >= self.owner.pending_octets_max {
            state.lost += 1;
            state.lost_total += 1;
            return;
        }
        let before = state.pending.len();
        encode::line(&mut state.pending, event);
        let after = state.pending.len();
        drop(state);
        // Two wake-ups a buffer at most: the first event starts the clock, a full buffer ends it.
        if before == 0 || (before < WAKE_OCTETS && after >= WAKE_OCTETS) {
            self.owner.shared.work.notify_one();
        }
    }

    /// Waits until everything appended before is in the file (not fsynced). Blocks the thread.
    pub fn flush(&self) {
        let shared = &self.owner.shared;
        let mut state = shared.lock();
        let mut wanted = state.taken;
        if !state.pending.is_empty() || state.lost > 0 {
            wanted += 1;
            state.hurry = true;
            shared.work.notify_one();
        }
        while state.done < wanted && !(state.stop && state.taken == state.done) {
            state = shared
                .written
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Events that were not written since the log was opened: no room in memory, or a failing disk.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        self.owner.shared.lock().lost_total
    }

    /// Writes the waiting events and closes this handle; the thread ends with the last handle.
    pub fn close(self) {
        self.flush();
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.work.notify_one();
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the writer was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

struct Writer {
    shared: Arc<Shared>,
    files: Files,
    dir: PathBuf,
    interval: Duration,
    /// The last write failed; the next failure is not reported again.
    failing: bool,
}

impl Writer {
    fn run(mut self) {
        let mut buffer = Vec::new();
        while let Some(lost) = self.take(&mut buffer) {
            let lines = buffer.iter().filter(|b| **b == b'\n').count() as u64;
            if lost > 0 {
                encode::lost_line(&mut buffer, lost);
            }
            let result = self.files.append(&buffer);
            buffer.clear();
            let mut state = self.shared.lock();
            if result.is_err() {
                state.lost += lost + lines;
                state.lost_total += lines;
            }
            state.done += 1;
            drop(state);
            self.shared.written.notify_all();
            report(&self.dir, &mut self.failing, result);
        }
    }

    /// Waits for events, then for the interval or a full buffer, and swaps the buffers.
    fn take(&self, buffer: &mut Vec<u8>) -> Option<u64> {
        let mut state = self.shared.lock();
        while state.pending.is_empty() && !state.stop && !state.hurry {
            state = self
                .shared
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let due = Instant::now() + self.interval;
        while state.pending.len() < WAKE_OCTETS && !state.stop && !state.hurry {
            let Some(left) = due.checked_duration_since(Instant::now()) else {
                break;
            };
            let waited = self.shared.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stop && state.pending.is_empty() {
            return None;
        }
        state.hurry = false;
        state.taken += 1;
        std::mem::swap(&mut state.pending, buffer);
        Some(std::mem::take(&mut state.lost))
    }
}

/// Reports once that the trace cannot be written, and once that writing works again.
fn report(dir: &Path, failing: &mut bool, result: io::Result<()>) {
    match result {
        Err(error) if !*failing => {
            *failing = true;
            tracing::error!(dir = %dir.display(), %error, "trace events are lost");
        }
        Ok(()) if *failing => {
            *failing = false;
            tracing::info!(dir = %dir.display(), "trace is written again");
        }
        _ => {}
    }
}
