//! The steps of a replacement, each of which can fail or be the last one before a crash.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// Readable and writable by its owner only.
const MODE: u32 = 0o600;

/// What a replacement does to the disk, in this order.
pub(super) trait Steps: Debug + Send + Sync {
    /// Writes a file, over the one that is there unless somebody reads that: its blocks are kept, so that a full disk
    /// has room for the same again.
    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<File>;
    /// Brings its octets and its length to stable storage.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Puts it in the place of the old one, at once for whoever looks; the old one gets its name, if there is one.
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
        // Who opened it before it was replaced has it locked until all of it is read.
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
            // Nothing is there yet, or the file system cannot do that.
            Err(Errno::ENOENT | Errno::EINVAL | Errno::ENOSYS) => std::fs::rename(from, to),
            other => Ok(other?),
        }
    }

    fn sync_folder(&self, folder: &File) -> io::Result<()> {
        folder.sync_all()
    }
}

/// Opens the file that is locked, which is made once and never removed.
pub(super) fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(MODE);
    options.open(path)
}
