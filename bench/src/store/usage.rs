//! What processes took of memory and disks, as the kernel tells.

use crate::process::Process;

/// Octets that processes, and those that they waited for, sent to disks.
pub(crate) fn written(processes: &[Process]) -> u64 {
    sum(processes, "io", "write_bytes:")
}

/// KiB of memory that is theirs; what several share counts in parts.
pub(crate) fn memory(processes: &[Process]) -> u64 {
    sum(processes, "smaps_rollup", "Pss:")
}

/// KiB of memory that they hold, what they share counted for each: read faster than [`memory`].
pub(crate) fn resident(processes: &[Process]) -> u64 {
    sum(processes, "status", "VmRSS:")
}

fn sum(processes: &[Process], file: &str, field: &str) -> u64 {
    let number = |process: &Process| {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", process.id)).ok()?;
        number_in(&text, field)
    };
    processes.iter().filter_map(number).sum()
}

/// The number behind a field's name in a text of the kernel.
fn number_in(text: &str, field: &str) -> Option<u64> {
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
        assert!(resident(&[own]) > 0);
    }
}
