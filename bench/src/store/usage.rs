//! Memory and disk traffic of processes, as the kernel counts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Process, guard};

/// Octets written to disks by processes and by their finished children.
pub(crate) fn written(processes: &[Process]) -> u64 {
    sum(processes, "io", "write_bytes:")
}

/// KiB of memory of the processes; shared memory counts in parts.
pub(crate) fn memory(processes: &[Process]) -> u64 {
    sum(processes, "smaps_rollup", "Pss:")
}

/// KiB of resident memory, with shared memory counted for each process: faster to read than [`memory`].
pub(crate) fn resident(processes: &[Process]) -> u64 {
    sum(processes, "status", "VmRSS:")
}

/// Processor time of the processes that were started with these arguments.
pub(crate) fn cpu_of_processes(processes: &[Process], arguments: &str) -> Duration {
    let named = |process: &&Process| process.command.contains(arguments);
    threads(processes.iter().filter(named))
        .map(|thread| on_cpu(&thread))
        .sum()
}

/// Processor time of the threads of a name.
pub(crate) fn cpu_of_threads(processes: &[Process], name: &str) -> Duration {
    let named = |thread: &PathBuf| {
        let own = std::fs::read_to_string(thread.join("comm"));
        own.is_ok_and(|own| own.trim_end() == name)
    };
    threads(processes.iter())
        .filter(named)
        .map(|thread| on_cpu(&thread))
        .sum()
}

/// The folders of the kernel for the threads of processes.
fn threads<'a>(processes: impl Iterator<Item = &'a Process>) -> impl Iterator<Item = PathBuf> {
    let folders = processes.map(|process| std::fs::read_dir(format!("/proc/{}/task", process.id)));
    folders.flatten().flatten().flatten().map(|one| one.path())
}

/// Reads a figure with pauses until two successive readings are alike, or the time is up; returns the last reading.
pub(crate) fn at_rest<T: Copy>(
    pause: Duration,
    patience: Duration,
    read: impl Fn() -> T,
    alike: impl Fn(T, T) -> bool,
) -> T {
    let deadline = Instant::now() + patience;
    let mut before = read();
    loop {
        std::thread::sleep(pause);
        let now = read();
        if alike(before, now) || Instant::now() > deadline || guard::is_stopped() {
            return now;
        }
        before = now;
    }
}

fn on_cpu(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

fn sum(processes: &[Process], file: &str, field: &str) -> u64 {
    let number = |process: &Process| {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", process.id)).ok()?;
        number_in(&text, field)
    };
    processes.iter().filter_map(number).sum()
}

/// The number behind a field's name in a text of the kernel.
pub(crate) fn number_in(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_the_whole_name() {
        let text = "rchar: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(number_in(text, "write_bytes:"), Some(4096));
        assert_eq!(number_in("VmRSS:\t  123 kB\n", "VmRSS:"), Some(123));
        assert_eq!(number_in(text, "read_bytes:"), None);
        let own = Process {
            id: std::process::id(),
            command: String::new(),
        };
        let own = [own];
        assert!(resident(&own) > 0);
        // A busy thread is seen under its name, and under no other name.
        let (stop, stopping) = std::sync::mpsc::channel::<()>();
        let busy = std::thread::Builder::new().name("busy-one".to_owned());
        let busy = busy.spawn(move || {
            let mut rounds = 0_u64;
            while matches!(
                stopping.try_recv(),
                Err(std::sync::mpsc::TryRecvError::Empty)
            ) {
                rounds += 1;
            }
            rounds
        });
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while cpu_of_threads(&own, "busy-one").is_zero() {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        drop(stop);
        busy.unwrap().join().unwrap();
        assert_eq!(cpu_of_threads(&own, "nobody"), Duration::ZERO);
        assert!(cpu_of_processes(&own, "") > Duration::ZERO);
        assert_eq!(cpu_of_processes(&own, "role parser"), Duration::ZERO);
    }
}
