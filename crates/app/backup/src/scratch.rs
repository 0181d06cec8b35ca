//! Scratch directories with unpacked mail and copies of passwords: nothing remains of a command that ended by a signal.
//!
//! A thread waits for the signals that end a command and removes the directory first. A command that was killed leaves
//! the directory; the next command that makes a scratch directory in the same place removes what nobody has locked.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::unistd::geteuid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;
use vere_process::failure::Failure;

use crate::fault::at;

/// The beginning of the name.
const PREFIX: &str = "vere-backup-";
/// The locked file in the directory.
const LOCK: &str = "in-use";
/// How often a directory is removed in which another thread still makes files.
const ATTEMPTS: usize = 1_000;
/// Exit code of a command that ended by a signal, less the signal.
const BY_SIGNAL: i32 = 128;

/// A private directory, removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: Lock,
}

/// A signal ends the process.
static ENDS: AtomicBool = AtomicBool::new(false);

/// The lock of a directory in use.
#[derive(Debug)]
struct Lock {
    _file: File,
}

impl Drop for Lock {
    /// Waits for the end of the process once a signal ends it: a command whose directory goes fails, and would end with
    /// the code of a failure.
    fn drop(&mut self) {
        while ENDS.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

impl Scratch {
    /// Makes a directory in `parent`, or in the directory for temporary files.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub(crate) fn make(parent: Option<&Path>) -> Result<Self, Failure> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        let wrong = at(&parent);
        remove_left(&parent);
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&parent)
            .map_err(&wrong)?;
        let lock = File::create_new(folder.path().join(LOCK)).map_err(&wrong)?;
        lock.try_lock()?;
        end_with(folder.path().to_owned())?;
        Ok(Self {
            folder,
            _lock: Lock { _file: lock },
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the directory before a signal ends the process.
fn end_with(folder: PathBuf) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            ENDS.store(true, Ordering::Release);
            remove(&folder);
            process::exit(BY_SIGNAL + signal);
        }
    };
    thread::Builder::new()
        .name("scratch".to_owned())
        .spawn(wait)?;
    Ok(())
}

fn remove(folder: &Path) {
    for _ in 0..ATTEMPTS {
        if fs::remove_dir_all(folder).is_ok() || !folder.exists() {
            return;
        }
    }
}

/// Removes the directories that killed commands of the same user left.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        if is_left(&entry).unwrap_or(false) {
            remove(&entry.path());
        }
    }
}

/// Whether a killed command of the same user left the directory. A directory without the lock is only just being made.
fn is_left(entry: &DirEntry) -> std::io::Result<bool> {
    let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
    if !is_ours || !entry.file_type()?.is_dir() {
        return Ok(false);
    }
    if entry.metadata()?.uid() != geteuid().as_raw() {
        return Ok(false);
    }
    let lock = OpenOptions::new()
        .write(true)
        .open(entry.path().join(LOCK))?;
    Ok(lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_killed_commands_go_and_used_ones_stay() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::make(Some(parent.path())).unwrap();
        let killed = Scratch::make(Some(parent.path())).unwrap();
        let Scratch { folder, _lock } = killed;
        let left = folder.keep();
        drop(_lock);
        fs::write(left.join("mail"), "").unwrap();
        let foreign = parent.path().join("vere-backup-other");
        fs::create_dir(&foreign).unwrap();
        let next = Scratch::make(Some(parent.path())).unwrap();
        assert!(!left.exists() && foreign.exists());
        assert!(used.path().exists() && next.path().exists());
        drop(next);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
    }
}
