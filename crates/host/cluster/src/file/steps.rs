//! The steps of a replacement: each step can fail, or be the last step before a crash.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// Readable and writable by the owner only.
const MODE: u32 = 0o600;

/// The disk operations of a replacement, in order.
pub(super) trait Steps: Debug + Send + Sync {
    /// Writes a file, over an existing file unless a reader has it open: the blocks are reused, so that a full disk
    /// has space for the next value.
    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<File>;
    /// Syncs the octets and the length of the file.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Exchanges the new file with the old file atomically; the old file, if present, gets the name of the new file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Brings the names in a folder to stable storage.
    fn sync_folder(&self, folder: &File) -> io::Result<()>;
}

/// The real ones.
#[derive(Debug)]
pub(super) struct System;

impl Steps for System {
    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(MODE);
        let mut file = options.open(path)?;
        // A reader that opened the file before its replacement holds a lock until the whole file is read.
        if file.try_lock().is_err() {
            std::fs::remove_file(path)?;
            file = options.open(path)?;
        }
        file.write_all(octets)?;
        file.set_len(octets.len() as u64)?;
        Ok(file)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let exchanged = renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_EXCHANGE);
        match exchanged {
            // There is no old file yet, or the file system cannot exchange files.
            Err(Errno::ENOENT | Errno::EINVAL | Errno::ENOSYS) => std::fs::rename(from, to),
            other => Ok(other?),
        }
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        folder.sync_all()
    }
}

/// Opens the lock file, which is created once and never removed.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(MODE);
    options.open(path)
}
