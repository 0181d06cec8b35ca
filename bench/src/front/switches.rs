//! Context switches of all processes of a system.
//!
//! The kernel counts switches by thread and forgets them with the thread, so the threads are read several times a
//! second: of a process that ends, the switches after the last reading are missing. That is a twentieth of the
//! switches of a process that lives for two seconds.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::store::usage::number_in;

/// Time between two readings.
const EVERY: Duration = Duration::from_millis(200);

/// How often the end of a watch is looked for.
const POLL: Duration = Duration::from_millis(10);

/// Process and thread.
type Thread = (u32, String);

/// The switches of threads at the first reading, and at the last.
#[derive(Debug, Default)]
struct Seen(HashMap<Thread, (u64, u64)>);

impl Seen {
    /// Takes a reading. A thread that was missing in the first reading began at 0.
    fn take(&mut self, readings: HashMap<Thread, u64>, is_first: bool) {
        for (thread, switches) in readings {
            let before = if is_first { switches } else { 0 };
            self.0.entry(thread).or_insert((before, switches)).1 = switches;
        }
    }

    fn total(&self) -> u64 {
        let each = self.0.values();
        each.map(|(first, last)| last.saturating_sub(*first)).sum()
    }
}

/// A watch over the processes of a system.
#[derive(Debug)]
pub(super) struct Switches {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Switches {
    /// Begins to watch a process and its descendants.
    pub(super) fn watch(root: u32) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let mut seen = Seen::default();
        seen.take(read(root), true);
        let run = move || {
            while !stopping.load(Ordering::Acquire) {
                let until = Instant::now() + EVERY;
                while Instant::now() < until && !stopping.load(Ordering::Acquire) {
                    std::thread::sleep(POLL);
                }
                seen.take(read(root), false);
            }
            seen.total()
        };
        let thread = std::thread::Builder::new().name("switches".to_owned());
        let thread = thread.spawn(run)?;
        Ok(Self { stop, thread })
    }

    /// Ends the watch; returns the switches since its beginning.
    pub(super) fn end(self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or(0)
    }
}

/// The switches so far of each thread of the processes.
fn read(root: u32) -> HashMap<Thread, u64> {
    let mut found = HashMap::new();
    for process in Process::tree(root).unwrap_or_default() {
        let threads = fs::read_dir(format!("/proc/{}/task", process.id));
        for thread in threads.into_iter().flatten().flatten() {
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let of = |field| number_in(&text, field);
            let voluntary = of("voluntary_ctxt_switches:");
            let Some(voluntary) = voluntary else { continue };
            let all = voluntary + of("nonvoluntary_ctxt_switches:").unwrap_or(0);
            let name = thread.file_name().to_string_lossy().into_owned();
            found.insert((process.id, name), all);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_begin_and_end_are_counted() {
        let reading = |values: &[(u32, u64)]| {
            let threads = values
                .iter()
                .map(|(id, switches)| ((*id, id.to_string()), *switches));
            threads.collect::<HashMap<_, _>>()
        };
        let mut seen = Seen::default();
        seen.take(reading(&[(1, 100), (2, 50)]), true);
        seen.take(reading(&[(1, 110), (3, 7)]), false);
        seen.take(reading(&[(1, 111)]), false);
        assert_eq!(seen.total(), 11 + 7);
    }

    #[test]
    fn a_process_that_sleeps_often_has_switches() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "while :; do sleep 0.01; done"])
            .spawn()
            .unwrap();
        let watch = Switches::watch(child.id()).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let switches = watch.end();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(switches > 5, "{switches}");
    }
}
