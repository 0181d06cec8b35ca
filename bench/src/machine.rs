//! The machine of a result.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The machine and its state at the start of a benchmark.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_kib: u64,
    kernel: String,
    filesystem: String,
    load_average: String,
}

impl Machine {
    /// Describes the machine; `folder` is the directory of synced data.
    pub(crate) fn describe(folder: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_default();
            line.split_once(':')
                .map(|(_, value)| value.trim().to_owned())
                .unwrap_or_default()
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_kib: memory
                .split(' ')
                .next()
                .and_then(|kib| kib.parse().ok())
                .unwrap_or(0),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            filesystem: filesystem_of(folder),
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "processor": self.processor,
            "cores": self.cores,
            "memory_kib": self.memory_kib,
            "kernel": self.kernel,
            "filesystem": self.filesystem,
            "load_average": self.load_average,
        })
    }

    pub(crate) fn line(&self) -> String {
        format!(
            "{} cores of {}, {} GiB, Linux {}, data on {}, load average {} at the start",
            self.cores,
            self.processor,
            self.memory_kib.div_ceil(1024 * 1024),
            self.kernel,
            self.filesystem,
            self.load_average,
        )
    }
}

/// The type of the file system of `folder`.
pub(crate) fn filesystem_of(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    filesystem(&mounts, folder)
}

/// The type of the file system `folder` lies on, from the text of `mountinfo`.
fn filesystem(mounts: &str, folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    mounts
        .lines()
        .filter_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            Some((head.split(' ').nth(4)?, tail.split(' ').next()?))
        })
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::filesystem;

    #[test]
    fn the_longest_mount_point_counts() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:3 / /nowhere rw shared:1 - tmpfs t rw";
        assert_eq!(filesystem(mounts, "/nowhere/x".as_ref()), "tmpfs");
        assert_eq!(filesystem(mounts, "/nowherex".as_ref()), "ext4");
        assert_eq!(filesystem("", "/".as_ref()), "unknown");
    }
}
