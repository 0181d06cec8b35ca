//! The memory of the machine, beside the bounds of the roles.

use std::fs;
use std::path::Path;

/// Where control groups are (cgroups(7), version 2).
const GROUPS: &str = "/sys/fs/cgroup";

/// Memory in octets: of the machine, or of the control group of this process where that has less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The whole memory.
    pub all: u64,
    /// The memory free of programs.
    pub available: u64,
    /// The whole swap space.
    pub swap: u64,
}

impl Memory {
    /// Reads the present figures; `None` where the kernel has no figures.
    #[must_use]
    pub fn read() -> Option<Self> {
        let machine = Self::parse(&fs::read_to_string("/proc/meminfo").ok()?)?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Some(match group_limit(&own, Path::new(GROUPS)) {
            Some(limit) => machine.within(limit),
            None => machine,
        })
    }

    /// Reads proc_meminfo(5).
    fn parse(text: &str) -> Option<Self> {
        let octets = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key))?;
            let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
            Some(kib.saturating_mul(1_024))
        };
        Some(Self {
            all: octets("MemTotal:")?,
            available: octets("MemAvailable:")?,
            swap: octets("SwapTotal:").unwrap_or(0),
        })
    }

    /// The memory of a control group with a limit, perhaps without swap space.
    fn within(self, limit: u64) -> Self {
        match limit < self.all {
            true => Self {
                all: limit,
                available: self.available.min(limit),
                swap: 0,
            },
            false => self,
        }
    }

    /// Whether processes with this bound fit into memory and swap space.
    #[must_use]
    pub const fn holds(&self, bound: u64) -> bool {
        bound <= self.all.saturating_add(self.swap)
    }

    /// Whether processes with this bound fit beside the programs that run now.
    #[must_use]
    pub const fn has_room_for(&self, bound: u64) -> bool {
        bound <= self.available.saturating_add(self.swap)
    }
}

/// The least limit of the control groups of a process, by the content of `/proc/self/cgroup`.
fn group_limit(own: &str, groups: &Path) -> Option<u64> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limits = Path::new(path).ancestors().filter_map(|group| {
        let text = fs::read_to_string(groups.join(group).join("memory.max")).ok()?;
        // The word of a group without a limit is `max`.
        text.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn the_figures_are_those_of_the_kernel() {
        let text = "MemTotal:        4000000 kB\nMemFree:          100 kB\nMemAvailable:  2000000 kB\nSwapTotal: 1000 kB\n";
        let memory = Memory::parse(text).unwrap();
        assert_eq!((memory.all, memory.swap), (4_096_000_000, 1_024_000));
        assert_eq!(memory.within(5 * GB), memory);
        let less = memory.within(GB);
        assert_eq!((less.all, less.available, less.swap), (GB, GB, 0));
        assert!(less.holds(GB) && !less.holds(GB + 1) && memory.holds(4_097_000_000));
        assert!(memory.has_room_for(2_049_000_000) && !memory.has_room_for(3 * GB));
    }

    /// A container on a large machine got the bounds of the machine.
    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let folder = tempfile::tempdir().unwrap();
        let groups = folder.path();
        fs::create_dir_all(groups.join("a.slice/b.service")).unwrap();
        let own = "12:pids:/x\n0::/a.slice/b.service\n";
        assert_eq!(group_limit(own, groups), None);
        fs::write(groups.join("a.slice/b.service/memory.max"), "max\n").unwrap();
        assert_eq!(group_limit(own, groups), None);
        fs::write(groups.join("a.slice/memory.max"), "2000\n").unwrap();
        assert_eq!(group_limit(own, groups), Some(2_000));
        fs::write(groups.join("memory.max"), "1000\n").unwrap();
        assert_eq!(group_limit(own, groups), Some(1_000));
        assert_eq!(group_limit("0::/\n", groups), Some(1_000));
        assert_eq!(group_limit("1:memory:/a.slice\n", groups), None);
    }
}
