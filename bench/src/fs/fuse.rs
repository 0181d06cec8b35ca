//! A program that mounts a file system: started, awaited, unmounted and ended.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::process::guard::{self, Left};
use crate::process::{CpuAccount, Daemon, Process};

/// Longest time from the start of a program to a mount that answers.
const MOUNT_MAX: Duration = Duration::from_secs(60);

/// Longest wait for an unmount with busy files, and for the program's end behind the unmount.
const UNMOUNT_MAX: Duration = Duration::from_secs(30);

/// How often a mount is looked for: the error of the mount's time.
const POLL: Duration = Duration::from_micros(500);

/// A mount point and its program.
#[derive(Debug)]
pub(super) struct Fuse {
    command: Vec<OsString>,
    log: PathBuf,
    point: PathBuf,
    daemon: Option<Daemon>,
}

impl Fuse {
    /// A mount of `command` at a directory `point`, which is created.
    pub(super) fn new(
        command: Vec<OsString>,
        log: PathBuf,
        point: PathBuf,
    ) -> Result<Self, BenchError> {
        fs::create_dir_all(&point).map_err(BenchError::io("make a mount point"))?;
        guard::keep(Left::Mount(point.clone()));
        Ok(Self {
            command,
            log,
            point,
            daemon: None,
        })
    }

    pub(super) fn point(&self) -> &Path {
        &self.point
    }

    /// Changes the last word of the command, for the next mount.
    pub(super) fn replace_last(&mut self, word: OsString) {
        if let Some(last) = self.command.last_mut() {
            *last = word;
        }
    }

    pub(super) fn is_mounted(&self) -> bool {
        is_mounted(&self.point)
    }

    /// Starts the program, and waits until the root answers; returns the time.
    pub(super) fn mount(&mut self) -> Result<Duration, BenchError> {
        let begun = Instant::now();
        let daemon = Daemon::spawn(&self.command, &self.log);
        let daemon = self
            .daemon
            .insert(daemon.map_err(BenchError::io("start a mount"))?);
        while !(is_mounted(&self.point) && fs::metadata(&self.point).is_ok()) {
            // A program that goes into the background ends early.
            let is_late = begun.elapsed() > MOUNT_MAX;
            if is_late || guard::is_stopped() {
                let words = daemon.last_words();
                let point = self.point.display();
                let text = format!("expected a mount at {point}; found none: {words}");
                return Err(BenchError::protocol(text));
            }
            if !daemon.is_running() && begun.elapsed() > Duration::from_secs(5) {
                return Err(BenchError::protocol(daemon.last_words()));
            }
            std::thread::sleep(POLL);
        }
        Ok(begun.elapsed())
    }

    /// Unmounts, and waits for the end of the program.
    pub(super) fn unmount(&mut self) -> Result<(), BenchError> {
        let until = Instant::now() + UNMOUNT_MAX;
        while is_mounted(&self.point) {
            let is_late = Instant::now() > until || guard::is_stopped();
            let mut command = Command::new("fusermount3");
            command.arg("-u").args(is_late.then_some("-z"));
            let done = guard::said_by(command.arg(&self.point));
            if is_late {
                done.map_err(BenchError::io("unmount"))?;
                break;
            }
            if done.is_err() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait(left.max(Duration::from_secs(1)));
        }
        Ok(())
    }

    /// The processes of the mount.
    pub(super) fn processes(&self) -> Vec<u32> {
        let Some(daemon) = &self.daemon else {
            return Vec::new();
        };
        if let CpuAccount::Group(group) = daemon.account() {
            let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            return text.lines().filter_map(|line| line.parse().ok()).collect();
        }
        let tree = Process::tree(daemon.id()).unwrap_or_default();
        tree.into_iter().map(|process| process.id).collect()
    }
}

impl Drop for Fuse {
    fn drop(&mut self) {
        // A failure leaves the mount to the guard.
        let _ = self.unmount();
    }
}

/// Whether a file system is mounted at a directory.
fn is_mounted(point: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let point = point.as_os_str().as_encoded_bytes();
    let at = |line: &str| line.split(' ').nth(4).map(str::as_bytes) == Some(point);
    mounts.lines().any(at)
}
