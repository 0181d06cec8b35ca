//! The directory of a register: the blocking operations.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::format;
use super::steps::{Steps, lock_file};
use crate::key::Key;
use crate::{RegisterError, Swap, Versioned};

/// The ending of a value's file.
const VALUE: &str = ".value";
/// The ending of a file in the making.
const NEW: &str = ".new";
/// The suffix of the file that a swap locks.
const LOCK: &str = ".lock";
/// How often a swap looks whether another process is done.
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// Private: write access here would allow a takeover of queues.
const MODE: u32 = 0o700;

#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    handle: File,
    identity: (u64, u64),
    steps: Box<dyn Steps>,
}

impl Folder {
    /// Opens a directory, creating a missing directory.
    pub(super) fn open(path: &Path, steps: Box<dyn Steps>) -> Result<Self, RegisterError> {
        let open = || {
            if !path.is_dir() {
                DirBuilder::new().recursive(true).mode(MODE).create(path)?;
                if let Some(parent) = path.parent().filter(|parent| parent.is_dir()) {
                    File::open(parent)?.sync_all()?;
                }
            }
            let path = path.canonicalize()?;
            let handle = File::open(&path)?;
            let metadata = handle.metadata()?;
            Ok((path, handle, (metadata.dev(), metadata.ino())))
        };
        let (path, handle, identity) = open().map_err(failed("open", path))?;
        Ok(Self {
            path,
            handle,
            identity,
            steps,
        })
    }

    pub(super) fn read(&self, key: &Key) -> Result<Option<Versioned>, RegisterError> {
        let current = self.current(key)?;
        if current.is_some() {
            self.settle()?;
        }
        Ok(current)
    }

    /// Waits for other processes until `deadline`.
    pub(super) fn swap(
        &self,
        key: &Key,
        expected: Option<u64>,
        value: &[u8],
        deadline: Instant,
    ) -> Result<Swap, RegisterError> {
        let _lock = self.lock(key, deadline)?;
        let current = self.current(key)?;
        let there = current.as_ref().map(|current| current.version);
        if there != expected {
            self.settle()?;
            return Ok(Swap::Conflict(current));
        }
        let Some(version) = there.unwrap_or(0).checked_add(1) else {
            return Err(self.damaged(key, "has the last version there is"));
        };
        self.replace(key, &format::encode(key, version, value))?;
        Ok(Swap::Done(version))
    }

    pub(super) fn list(&self, prefix: &str) -> Result<Vec<(String, Versioned)>, RegisterError> {
        self.check_identity()?;
        // Damaged files of another kind do not concern the caller.
        let kind = prefix.split_once('/').map(|(kind, _)| format!("{kind}."));
        let list = || {
            let mut paths = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let name = entry.file_name();
                let ours = name.to_str().is_some_and(|name| {
                    name.ends_with(VALUE) && kind.as_ref().is_none_or(|kind| name.starts_with(kind))
                });
                paths.extend(ours.then(|| entry.path()));
            }
            Ok(paths)
        };
        let mut found = Vec::new();
        for path in list().map_err(failed("list", &self.path))? {
            if let Some((key, versioned)) = read_file(&path)? {
                self.check_name(&key, &path)?;
                if key.as_str().starts_with(prefix) {
                    found.push((key.as_str().to_owned(), versioned));
                }
            }
        }
        self.settle()?;
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// The present value, perhaps not yet on stable storage.
    fn current(&self, key: &Key) -> Result<Option<Versioned>, RegisterError> {
        let path = self.file(key, VALUE);
        let read = read_file(&path)?;
        // After the look: a folder that was there before may have gone meanwhile.
        self.check_identity()?;
        let Some((there, versioned)) = read else {
            return Ok(None);
        };
        self.check_name(&there, &path)?;
        if there != *key {
            return Err(self.damaged(key, &format!("holds the key {:?}", there.as_str())));
        }
        Ok(Some(versioned))
    }

    /// Ensures that a value just read survives a power cut: the writer may have been killed between the rename and
    /// the sync of the directory.
    fn settle(&self) -> Result<(), RegisterError> {
        let settled = self.steps.sync_folder(&self.handle);
        settled.map_err(failed("sync", &self.path))
    }

    fn replace(&self, key: &Key, octets: &[u8]) -> Result<(), RegisterError> {
        let (new, value) = (self.file(key, NEW), self.file(key, VALUE));
        let is_kept = new.exists();
        if is_kept {
            // On the disk it may still have the other's name, as long as the last exchange is not synced.
            self.settle()?;
        }
        let written = self
            .steps
            .write(&new, octets)
            .and_then(|file| self.steps.sync(&file));
        if let Err(error) = written {
            // A partial file takes space, unless it is kept for the next swap.
            if !is_kept {
                let _ = fs::remove_file(&new);
            }
            return Err(failed("write", &new)(error));
        }
        let unknown = |what, error| match failed(what, &value)(error) {
            RegisterError::Unreachable { reason, .. } => RegisterError::unknown(reason),
            // A missing permission is detected before the exchange.
            other => other,
        };
        self.steps
            .rename(&new, &value)
            .map_err(|error| unknown("replace", error))?;
        self.steps
            .sync_folder(&self.handle)
            .map_err(|error| RegisterError::unknown(words("sync the folder of", &value, &error)))
    }

    fn lock(&self, key: &Key, deadline: Instant) -> Result<File, RegisterError> {
        let path = self.file(key, LOCK);
        let file = lock_file(&path).map_err(failed("open", &path))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let what = format!("another process holds {} for too long", path.display());
                    return Err(RegisterError::unreachable(what));
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
            }
        }
    }

    /// The absence of a file is conclusive only in the directory that was opened: after an unmount, or with a
    /// replaced directory, the state is unknown.
    fn check_identity(&self) -> Result<(), RegisterError> {
        let now = fs::metadata(&self.path).map(|metadata| (metadata.dev(), metadata.ino()));
        if now.is_ok_and(|now| now == self.identity) {
            return Ok(());
        }
        Err(RegisterError::Damaged {
            file: self.path.clone(),
            reason: "is no longer the folder that was opened at the start".to_owned(),
        })
    }

    fn check_name(&self, key: &Key, path: &Path) -> Result<(), RegisterError> {
        if self.file(key, VALUE) == path {
            return Ok(());
        }
        Err(RegisterError::Damaged {
            file: path.to_owned(),
            reason: format!("holds the key {:?}, which belongs elsewhere", key.as_str()),
        })
    }

    fn file(&self, key: &Key, ending: &str) -> PathBuf {
        self.path.join(key.file_stem() + ending)
    }

    fn damaged(&self, key: &Key, reason: &str) -> RegisterError {
        RegisterError::Damaged {
            file: self.file(key, VALUE),
            reason: reason.to_owned(),
        }
    }
}

/// Opens a value so that no process overwrites the file before it is closed: a file replaced since it was opened may
/// already be overwritten, and is not used.
pub(super) fn open_value(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        let is_locked = match file.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        if is_locked && fs::metadata(path)?.ino() == file.metadata()?.ino() {
            return Ok(file);
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// Reads a whole file; by the rename the content is either the old value or the new value.
fn read_file(path: &Path) -> Result<Option<(Key, Versioned)>, RegisterError> {
    let file = match open_value(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("open", path)(error)),
    };
    let mut octets = Vec::new();
    let bound = format::FILE_MAX as u64 + 1;
    file.take(bound)
        .read_to_end(&mut octets)
        .map_err(failed("read", path))?;
    let decoded = format::decode(&octets);
    decoded.map(Some).map_err(|reason| RegisterError::Damaged {
        file: path.to_owned(),
        reason,
    })
}

/// An error of the operating system before any change.
fn failed<'a>(what: &'a str, path: &'a Path) -> impl Fn(io::Error) -> RegisterError + 'a {
    move |error| match error.kind() {
        ErrorKind::PermissionDenied => RegisterError::refused(words(what, path, &error)),
        _ => RegisterError::unreachable(words(what, path, &error)),
    }
}

fn words(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
