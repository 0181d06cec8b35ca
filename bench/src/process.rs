//! Starting of measured programs, and the CPU time of all their processes.
//!
//! Two ways of accounting, best first:
//!
//! - A control group (v2) for each daemon: the kernel sums user and system time of every process that ever was in the
//!   group, regardless of forks and reaping, in microseconds, and the group can be killed as a whole. Needs the right
//!   to create a group, so usually root.
//! - The process tree: `/proc/PID/stat` of the daemon and all living descendants, with `cutime` and `cstime` for
//!   reaped processes, in ticks of 10 ms. Misses processes that left the tree by a double fork, and children of a
//!   parent that ignores SIGCHLD.
//!
//! Threads of the benchmark's process (generator, sink, no-op relay) are read from their `schedstat`.

mod daemon;
pub(crate) mod guard;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use daemon::Daemon;
pub(crate) use daemon::{entering, remove_group};

/// A clock tick in `/proc`; USER_HZ is 100 on every platform of Linux.
const TICK: Duration = Duration::from_millis(10);

/// A way to read the CPU time something has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuAccount {
    /// All processes of a control group, ended processes included.
    Group(PathBuf),
    /// A process and its descendants, reaped processes included.
    Tree(u32),
    /// A thread of the calling process.
    Thread(u32),
}

impl CpuAccount {
    /// The account of the calling thread.
    pub fn of_this_thread() -> Self {
        Self::Thread(nix::unistd::gettid().as_raw().unsigned_abs())
    }

    /// User and system time taken so far.
    ///
    /// # Errors
    ///
    /// The process, thread or group is gone, or the kernel's text is not as expected.
    pub fn total(&self) -> io::Result<Duration> {
        match self {
            Self::Group(path) => {
                let text = fs::read_to_string(path.join("cpu.stat"))?;
                let usage = text
                    .lines()
                    .find_map(|line| line.strip_prefix("usage_usec "));
                usage
                    .and_then(|usage| usage.parse().ok())
                    .map(Duration::from_micros)
            }
            Self::Tree(root) => return tree_total(*root),
            Self::Thread(thread) => {
                let text = fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
                let on_cpu = text.split(' ').next();
                on_cpu
                    .and_then(|on_cpu| on_cpu.parse().ok())
                    .map(Duration::from_nanos)
            }
        }
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unknown form of CPU account"))
    }

    /// How the time is found, in a word for a report.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Group(_) => "control group",
            Self::Tree(_) => "process tree",
            Self::Thread(_) => "thread",
        }
    }
}

/// Starts a thread of a name; returns the thread and its CPU account.
pub(crate) fn thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<(JoinHandle<T>, CpuAccount)> {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn(move || {
        // The receiver waits below.
        let _ = tell.send(CpuAccount::of_this_thread());
        run()
    })?;
    let account = told.recv().map_err(io::Error::other)?;
    Ok((thread, account))
}

/// The relevant numbers of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// utime + stime + cutime + cstime.
    ticks: u64,
}

/// Reads a line of `/proc/PID/stat`. The second field is the name in brackets, which may contain spaces and brackets,
/// so counting starts behind the last bracket.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text
        .get(text.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().unwrap_or(0))
        .sum();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ticks,
    })
}

fn processes() -> io::Result<HashMap<u32, Stat>> {
    let mut found = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        // A process may end between listing and reading.
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some(stat) = parse_stat(&text) {
            found.insert(pid, stat);
        }
    }
    Ok(found)
}

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub id: u32,
    /// The arguments, program first, joined by spaces; empty for a zombie.
    pub command: String,
}

impl Process {
    /// `root` and all its descendants, by id.
    ///
    /// # Errors
    ///
    /// `/proc` cannot be read.
    pub fn tree(root: u32) -> io::Result<Vec<Self>> {
        let tree = descendants(root, &processes()?);
        let command = |id| {
            let arguments = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments)
                .replace('\0', " ")
                .trim_end()
                .to_owned()
        };
        Ok(tree
            .into_iter()
            .map(|id| Self {
                id,
                command: command(id),
            })
            .collect())
    }

    /// User and system time of the living threads so far.
    ///
    /// # Errors
    ///
    /// The process is gone, or the kernel's text is not as expected.
    pub(crate) fn cpu(&self) -> io::Result<Duration> {
        let mut sum = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            let on_cpu = text.split(' ').next().and_then(|text| text.parse().ok());
            let unknown =
                || io::Error::new(io::ErrorKind::InvalidData, "unknown form of schedstat");
            sum += Duration::from_nanos(on_cpu.ok_or_else(unknown)?);
        }
        Ok(sum)
    }

    /// Ends the process at once with SIGKILL; returns whether the process still existed.
    pub fn kill(&self) -> bool {
        self.signal(Signal::SIGKILL)
    }

    /// Sends a signal to the process; returns whether the process still existed.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        i32::try_from(self.id).is_ok_and(|id| kill(Pid::from_raw(id), signal).is_ok())
    }
}

/// `root` and its descendants among `processes`, sorted.
fn descendants(root: u32, processes: &HashMap<u32, Stat>) -> Vec<u32> {
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        at += 1;
        let children = processes.iter().filter(|(_, stat)| stat.parent == parent);
        tree.extend(children.map(|(pid, _)| *pid));
    }
    tree.sort_unstable();
    tree
}

fn tree_total(root: u32) -> io::Result<Duration> {
    let mut before = Vec::new();
    // A child reaped between the reads is counted twice or never: look until the tree holds still.
    for _ in 0..5 {
        let processes = processes()?;
        if !processes.contains_key(&root) {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the process is gone",
            ));
        }
        let tree = descendants(root, &processes);
        let ticks: u64 = tree
            .iter()
            .filter_map(|pid| processes.get(pid))
            .map(|s| s.ticks)
            .sum();
        if tree == before {
            return Ok(TICK * u32::try_from(ticks).unwrap_or(u32::MAX));
        }
        before = tree;
    }
    Err(io::Error::other(
        "processes come and go too fast to be counted",
    ))
}

#[cfg(test)]
mod tests {
    use super::daemon::Group;
    use super::{CpuAccount, Daemon, Stat, parse_stat};
    use std::ffi::OsString;
    use std::time::{Duration, Instant};

    /// Burns CPU in a reaped child, in a living child, and in a child that left the tree.
    const BURN: &str = "burn() { i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; }; \
        (burn); (burn; echo done; sleep 60) & (burn; (burn; echo done; sleep 60) & ) & \
        burn; echo done; wait";

    fn burnt(group: Option<Group>) -> (Duration, CpuAccount) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let command = ["/bin/sh", "-c", BURN].map(OsString::from);
        let daemon = Daemon::spawn_in(&command, &log, group).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while daemon.last_words().lines().count() < 3 {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        (daemon.account().total().unwrap(), daemon.account())
    }

    #[test]
    fn children_reaped_and_living_are_counted() {
        let (tree, account) = burnt(None);
        assert_eq!(account.method(), "process tree");
        assert!(tree >= Duration::from_millis(50), "{tree:?}");
        let Some(group) = Group::create() else {
            eprintln!("skipped: no right to create a control group here");
            return;
        };
        let path = group.path.clone();
        let (total, account) = burnt(Some(group));
        assert_eq!(account, CpuAccount::Group(path.clone()));
        assert!(!path.exists());
        // Five burns against the four that stay in the tree, or three when the orphan moved away.
        let ratio = total.as_secs_f64() / tree.as_secs_f64();
        assert!((0.6..4.0).contains(&ratio), "{total:?} {tree:?}");
    }

    #[test]
    fn a_thread_has_its_own_account() {
        let account = CpuAccount::of_this_thread();
        let before = account.total().unwrap();
        let mut sum = 0_u64;
        for number in 0..3_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        assert!(account.total().unwrap() > before, "{sum}");
    }

    #[test]
    fn names_with_brackets_do_not_shift_fields() {
        let line = "7 (a) b) (c) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                parent: 3,
                ticks: 100
            })
        );
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_stopped_daemon_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let command = ["/bin/sleep", "60"].map(OsString::from);
        let mut daemon = Daemon::spawn(&command, &dir.path().join("log")).unwrap();
        assert!(daemon.is_running());
        assert!(daemon.stop(Duration::from_secs(5)));
        assert!(!daemon.is_running());
    }
}
