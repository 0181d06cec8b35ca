//! A long start, told to the supervisor and to systemd.
//!
//! A role gives no other sign of life before the end of its log. The signs follow the octets read: from a hanging disk comes
//! no sign, and the supervisor replaces the role.

use std::io;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use vere_units::Span;

use super::wording::size;

use crate::entry::tell;

/// Time between two looks. A start that is over sooner says nothing.
const LOOK: Duration = Duration::from_secs(1);

/// Tells of the progress until dropped.
#[derive(Debug)]
#[must_use = "the progress is told until this is dropped"]
pub struct Recovering {
    /// Dropped first, which ends the thread.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Recovering {
    /// Tells how far the reading of the log in `folder` is; `read` counts the octets that this process read of logs.
    /// Without a thread nothing is told, and the start goes on.
    pub fn of(folder: &Path, read: fn() -> u64) -> Self {
        let (over, ended) = mpsc::channel();
        let mut progress = Progress::new(octets_below(folder), read(), Instant::now());
        let told = move || {
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if let Some(text) = progress.text(read(), Instant::now()) {
                    tell(&[NotifyState::Status(&text)]);
                }
            }
        };
        let thread = std::thread::Builder::new().name("recovering".to_owned());
        Self {
            over: Some(over),
            thread: thread.spawn(told).ok(),
        }
    }
}

impl Drop for Recovering {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Octets of all files in a folder and the folders in it.
fn octets_below(folder: &Path) -> u64 {
    let sum = |entries: std::fs::ReadDir| -> io::Result<u64> {
        let mut octets = 0;
        for entry in entries {
            let entry = entry?;
            octets += match entry.file_type()?.is_dir() {
                true => octets_below(&entry.path()),
                false => entry.metadata()?.len(),
            };
        }
        Ok(octets)
    };
    std::fs::read_dir(folder).and_then(sum).unwrap_or_default()
}

/// How far a log is read.
#[derive(Debug)]
struct Progress {
    /// Octets of the log; a start may need only the end of it.
    all: u64,
    before: u64,
    last: u64,
    began: Instant,
}

impl Progress {
    fn new(all: u64, read: u64, began: Instant) -> Self {
        Self {
            all,
            before: read,
            last: read,
            began,
        }
    }

    /// The status text; `None` where the count of octets is that of the last look.
    fn text(&mut self, read: u64, now: Instant) -> Option<String> {
        if read == self.last {
            return None;
        }
        self.last = read;
        let done = read - self.before;
        let seconds = now.saturating_duration_since(self.began).as_secs_f64();
        let rate = (done as f64 / seconds.max(0.001)) as u64;
        let (shown, rate_shown) = (size(done), size(rate));
        let Some(left) = self.all.checked_sub(done).filter(|_| rate > 0) else {
            return Some(format!("reading the log: {shown}, {rate_shown}/s"));
        };
        let left = Span::from(Duration::from_secs(left.div_ceil(rate)));
        let all = size(self.all);
        Some(format!(
            "reading the log: {shown} of at most {all}, {rate_shown}/s, {left} left"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_as_long_as_something_is_read() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut progress = Progress::new(300 << 20, 7, began);
        assert_eq!(progress.text(7, after(1)), None);
        assert_eq!(
            progress.text(7 + (100 << 20), after(2)).unwrap(),
            "reading the log: 100 MiB of at most 300 MiB, 50.0 MiB/s, 4s left"
        );
        assert_eq!(progress.text(7 + (100 << 20), after(3)), None);
        // Some octets are read twice.
        assert_eq!(
            progress.text(7 + (400 << 20), after(4)).unwrap(),
            "reading the log: 400 MiB, 100 MiB/s"
        );
    }

    #[test]
    fn files_of_all_depths_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("group")).unwrap();
        std::fs::write(folder.path().join("a"), [0; 5]).unwrap();
        std::fs::write(folder.path().join("group/b"), [0; 7]).unwrap();
        assert_eq!(octets_below(folder.path()), 12);
        assert_eq!(octets_below(&folder.path().join("none")), 0);
    }

    #[test]
    fn a_short_start_says_nothing_and_ends_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let began = Instant::now();
        drop(Recovering::of(folder.path(), || 0));
        assert!(began.elapsed() < LOOK);
    }
}
