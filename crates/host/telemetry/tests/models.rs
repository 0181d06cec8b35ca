//! The trace's threads in every order of events: those that append, flush and let go, and the one that
//! writes. The writer is that of the library, built over primitives that the model checker runs; its
//! files are a list in memory.
//!
//! What is shown: every event is written or counted as lost; what waits is bounded; `flush` returns, and
//! not before what came earlier is written; the last handle writes out the rest and ends the thread.
//! Time stands still in a model, so none of it hangs on the flush interval.

#![allow(dead_code, unreachable_pub, reason = "the library has more users")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "../src/trace/writer.rs"]
mod writer;
mod threads {
    pub(super) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(super) use loom::thread::{Builder, JoinHandle};
}
mod encode {
    pub(super) fn line(out: &mut Vec<u8>, event: &super::Event<'_>) {
        out.extend_from_slice(event.0.as_bytes());
        out.push(b'\n');
    }

    pub(super) fn lost_line(out: &mut Vec<u8>, count: u64) {
        out.extend_from_slice(format!("lost {count}\n").as_bytes());
    }
}
mod files {
    use std::cell::RefCell;
    use std::io;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    thread_local! {
        /// The disk of the run. All threads of a model are one of the system's.
        static DISK: RefCell<Arc<Mutex<Disk>>> = RefCell::default();
    }

    #[derive(Debug, Default)]
    pub(super) struct Disk {
        pub(super) lines: Vec<String>,
        /// Octets of the longest write.
        pub(super) longest: usize,
        /// The next write fails.
        pub(super) fails: bool,
    }

    /// Begins with an empty disk.
    pub(super) fn begin(fails: bool) -> Arc<Mutex<Disk>> {
        let disk = Arc::new(Mutex::new(Disk {
            fails,
            ..Disk::default()
        }));
        DISK.with(|now| now.replace(Arc::clone(&disk)));
        disk
    }

    #[derive(Debug)]
    pub(super) struct Files(Arc<Mutex<Disk>>);

    impl Files {
        pub(super) fn open(_: PathBuf, _: u64, _: u64) -> io::Result<Self> {
            Ok(Self(DISK.with(|disk| disk.borrow().clone())))
        }

        pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
            let mut disk = self.0.lock().unwrap();
            if std::mem::take(&mut disk.fails) {
                return Err(io::Error::other("test"));
            }
            disk.longest = disk.longest.max(lines.len());
            let lines = String::from_utf8_lossy(lines);
            disk.lines.extend(lines.lines().map(str::to_owned));
            Ok(())
        }
    }
}

use std::time::Duration;

use self::writer::{TraceLog, TraceOptions};

/// An event of the model: its line.
pub(crate) struct Event<'a>(&'a str);

/// Switches of threads that nothing asked for, at most, in one run.
const PREEMPTIONS: usize = 2;

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(run);
}

fn open(pending_octets_max: usize) -> TraceLog {
    let options = TraceOptions {
        flush_interval: Duration::from_secs(3_600),
        pending_octets_max,
        ..TraceOptions::new("trace")
    };
    TraceLog::open(options).unwrap()
}

/// Two that append, one of which flushes.
#[test]
fn a_flush_returns_when_what_came_before_is_written() {
    model(|| {
        let disk = files::begin(false);
        let log = open(100);
        let other = log.clone();
        let thread = loom::thread::spawn(move || {
            other.append(&Event("other"));
            other.flush();
        });
        log.append(&Event("one"));
        log.flush();
        assert!(disk.lock().unwrap().lines.iter().any(|line| line == "one"));
        thread.join().unwrap();
        drop(log);
        let mut lines = disk.lock().unwrap().lines.clone();
        lines.sort();
        assert_eq!(lines, ["one", "other"]);
    });
}

/// The last handle goes: nothing that was taken is forgotten, and its thread ends.
#[test]
fn the_last_handle_writes_out_what_waits() {
    model(|| {
        let disk = files::begin(false);
        let log = open(100);
        let other = log.clone();
        let thread = loom::thread::spawn(move || other.append(&Event("other")));
        log.append(&Event("one"));
        drop(log);
        thread.join().unwrap();
        let mut lines = disk.lock().unwrap().lines.clone();
        lines.sort();
        assert_eq!(lines, ["one", "other"]);
    });
}

/// More than may wait, and a write that fails: what was not written was counted, and nothing else.
#[test]
fn what_is_not_written_is_counted() {
    for fails in [false, true] {
        model(move || {
            let disk = files::begin(fails);
            // Room for one line; the next one is the first beyond it.
            let log = open(4);
            for event in ["aaa", "bbb", "ccc"] {
                log.append(&Event(event));
            }
            log.flush();
            let lost = log.lost_total();
            log.flush();
            drop(log);
            let disk = disk.lock().unwrap();
            let written = disk.lines.iter().filter(|line| !line.starts_with("lost"));
            assert_eq!(written.count() as u64 + lost, 3);
            let told: u64 = disk
                .lines
                .iter()
                .filter_map(|line| line.strip_prefix("lost ")?.parse::<u64>().ok())
                .sum();
            assert_eq!(told, lost, "{:?}", disk.lines);
            assert!(disk.longest <= "aaa\nlost 3\n".len());
        });
    }
}
