//! Programs started for a measurement, with an account of the CPU time of all their processes.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::CpuAccount;
use super::guard::{self, Left};

/// How often an ending process is looked at.
const STOP_POLL: Duration = Duration::from_millis(10);

/// A control group of ours, removed when dropped.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) path: PathBuf,
}

impl Group {
    /// A new group below the process's own group, if the kernel allows the creation.
    pub(super) fn create() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let (head, tail) = line.split_once(" - ")?;
            tail.starts_with("cgroup2 ")
                .then(|| head.split(' ').nth(4))?
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vere-bench-{}-{number}", std::process::id());
        let path = Path::new(mount).join(own).join(name);
        fs::create_dir(&path).ok()?;
        guard::keep(Left::Group(path.clone()));
        let group = Self { path };
        group.path.join("cpu.stat").exists().then_some(group)
    }

    fn kill(&self) {
        // Kernels before 5.14 have no such file; then only the daemon itself is killed.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        remove_group(&self.path, Duration::from_secs(2));
    }
}

/// A command that enters a control group before its first instruction; only the started process itself can enter
/// without unsafe code here.
pub(crate) fn entering(group: &Path, command: &[OsString]) -> Vec<OsString> {
    let script = r#"echo $$ >"$0"/cgroup.procs && exec "$@""#;
    let shell = ["/bin/sh".into(), "-c".into(), script.into(), group.into()];
    [&shell, command].concat()
}

/// Removes a control group as soon as its processes have left.
pub(crate) fn remove_group(group: &Path, patience: Duration) {
    let until = Instant::now() + patience;
    while fs::remove_dir(group).is_err() && Instant::now() < until {
        std::thread::sleep(STOP_POLL);
    }
}

/// A program started for a measurement, with an account of the CPU time of program and children.
///
/// A drop kills the program, and with a control group every process left behind.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    /// The process was reaped: its number may belong to another process.
    is_gone: bool,
    group: Option<Group>,
    log: PathBuf,
}

impl Daemon {
    /// Starts `command` (program first), with the file `log` for the output.
    ///
    /// # Errors
    ///
    /// The log cannot be written, or the program cannot be started.
    pub fn spawn(command: &[OsString], log: &Path) -> io::Result<Self> {
        Self::spawn_in(command, log, Group::create())
    }

    pub(super) fn spawn_in(
        command: &[OsString],
        log: &Path,
        group: Option<Group>,
    ) -> io::Result<Self> {
        if command.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program"));
        }
        let command = match &group {
            Some(group) => entering(&group.path, command),
            None => command.to_vec(),
        };
        let output = File::create(log)?;
        let child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()?;
        guard::keep(Left::Process(child.id()));
        Ok(Self {
            child,
            is_gone: false,
            group,
            log: log.to_owned(),
        })
    }

    /// The process id of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The CPU account of the program and all its descendants.
    pub fn account(&self) -> CpuAccount {
        match &self.group {
            Some(group) => CpuAccount::Group(group.path.clone()),
            None => CpuAccount::Tree(self.child.id()),
        }
    }

    /// Whether the program still runs.
    pub fn is_running(&self) -> bool {
        !self.is_gone && !guard::has_ended(&self.child)
    }

    /// The end of the output, for an error message.
    pub fn last_words(&self) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(&self.log) {
            let _ = file.read_to_end(&mut text);
        }
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    /// Ends the program at once with SIGKILL and waits for its end.
    pub fn kill(&mut self) {
        if std::mem::replace(&mut self.is_gone, true) {
            return;
        }
        // Already ended is fine.
        let _ = self.child.kill();
        let _ = guard::reap(&mut self.child);
    }

    /// Sends SIGTERM and waits for the end; returns whether the program ended within `grace`.
    pub fn stop(&mut self, grace: Duration) -> bool {
        if let Ok(pid) = i32::try_from(self.child.id())
            && self.is_running()
        {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        self.wait(grace)
    }

    /// Waits for the end; returns whether the program ended within `grace`.
    pub fn wait(&mut self, grace: Duration) -> bool {
        let until = Instant::now() + grace;
        while self.is_running() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(STOP_POLL);
        }
        true
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.kill();
        }
        self.kill();
    }
}
