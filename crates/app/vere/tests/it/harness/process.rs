//! Processes: started, signalled, measured, and never left behind.

use std::net::SocketAddr;
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::{Session, wait_for, wait_within};

/// A child process that ends with the test.
#[derive(Debug)]
pub(crate) struct Child(std::process::Child);

impl Child {
    /// Starts the process.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}")))
    }

    /// Starts the process without input and output.
    pub(crate) fn spawn_quiet(command: &mut Command) -> Self {
        Self::spawn(quiet(command))
    }

    /// Waits until a server greets at `address`; a server that ends instead fails the test with its log.
    pub(crate) fn wait_greeting(&mut self, address: SocketAddr, log: impl Fn() -> String) {
        wait_for("a greeting", || {
            if let Some(status) = self.ended() {
                panic!("the server ended with {status}:\n{}", log());
            }
            Session::try_connect(address).ok().map(drop)
        });
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// The standard output of the process, which must be piped.
    pub(crate) fn take_output(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("piped")
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().expect("wait")
    }

    /// Asks the process to end and waits for the end; kills the process after `patience`.
    pub(crate) fn stop(&mut self, patience: Duration) -> ExitStatus {
        let _ = signal(self.id(), Signal::SIGTERM);
        wait_within(patience, "the end of a process", || self.ended())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes input and output away from a program.
pub(crate) fn quiet(command: &mut Command) -> &mut Command {
    let nothing = Stdio::null;
    command.stdin(nothing()).stdout(nothing()).stderr(nothing())
}

/// Sends a signal; false when the process no longer exists. A stopped process stands still on return: its threads go
/// on for a moment, on a busy machine for long enough to read an answer and act.
pub(crate) fn signal(pid: u32, signal: Signal) -> bool {
    let process = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    let is_sent = nix::sys::signal::kill(process, signal).is_ok();
    if is_sent && signal == Signal::SIGSTOP {
        while !stands_still(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    is_sent
}

/// Whether all threads of a process are stopped, or it is gone.
pub(crate) fn stands_still(pid: u32) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return true;
    };
    let mut states = tasks.flatten().filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        // The name before the state may hold anything.
        stat.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
}

/// Octets of memory that are private to a process and were written. Pages of the program are left out: their sharing
/// depends on the processes that run at the moment.
pub(crate) fn private_memory(pid: u32) -> u64 {
    let file = format!("/proc/{pid}/smaps_rollup");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.expect("its anonymous memory") * 1024
}

/// The children of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let pids = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in brackets may hold anything; the second word behind it is the parent.
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&parent.to_string())
    })
    .collect()
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: u32) -> usize {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder}: {error}"));
    entries.count()
}

/// The CPU time of a process, user and system.
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may hold anything; behind it, the 12th and 13th word are the times.
    let rest = text.rsplit(')').next().unwrap_or_default();
    let words = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = words.filter_map(|word| word.parse::<u64>().ok()).sum();
    // The kernel counts 100 ticks a second towards user space on every platform of ours.
    Duration::from_millis(ticks * 10)
}

/// How long a process's first thread, or this thread, was ready and had to wait for a CPU.
///
/// A correction of measured times for the other load of the machine.
pub(crate) fn cpu_wait(pid: Option<u32>) -> Duration {
    let who = pid.map_or_else(|| "thread-self".to_owned(), |pid| pid.to_string());
    let text = std::fs::read_to_string(format!("/proc/{who}/schedstat")).unwrap_or_default();
    let wait = text.split_whitespace().nth(1);
    Duration::from_nanos(wait.and_then(|wait| wait.parse().ok()).unwrap_or(0))
}

/// Raises the soft limit of open files to the hard limit and returns the limit.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("up to the hard limit");
    hard
}
