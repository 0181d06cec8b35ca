//! The steps of a replacement, each of which can fail or be the last one before a crash.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Readable and writable by its owner only.
const MODE: u32 = 0o600;

/// What a replacement does to the disk, in this order.
pub(super) trait Steps: Debug + Send + Sync {
    /// Writes a new file, over a leftover if there is one.
    fn write(&self, path: &Path, octets: &[u8]) -> io::Result<File>;
    /// Brings its octets and its length to stable storage.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Puts it in the place of the old one, at once for whoever looks.
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
        options.write(true).create(true).truncate(true).mode(MODE);
        let mut file = options.open(path)?;
        file.write_all(octets)?;
        Ok(file)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
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
