//! The calls of the operating system that the writer makes, so that tests can refuse them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::stable::sync_folder;

/// Mail is nobody else's business, but a group may be let in.
const FILE_MODE: u32 = 0o640;
const FOLDER_MODE: u32 = 0o750;

/// Directories.
pub(super) trait Disk: Send {
    /// Makes a directory; false if the directory exists already.
    fn make_folder(&self, path: &Path) -> io::Result<bool>;
    /// Makes a file, which must not exist.
    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Brings the names in a directory to stable storage.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that is written from its beginning to its end.
pub(super) trait Output: Send {
    /// Writes a part of the pieces behind what was written, and returns the number of octets.
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Cuts the file; writing goes on there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Brings the octets to stable storage.
    fn sync(&mut self) -> io::Result<()>;
    /// Announces that synced octets are not read in the near future, so that the system can use their memory for others.
    fn set_aside(&mut self, octets: Range<u64>);
}

/// The directories of this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealDisk;

impl Disk for RealDisk {
    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        make_folder(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(create(path)?))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        sync_folder(path)
    }
}

impl Output for File {
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_vectored(pieces)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_aside(&mut self, octets: Range<u64>) {
        let length = octets.end.saturating_sub(octets.start);
        if let (Ok(start), Ok(length)) = (i64::try_from(octets.start), i64::try_from(length)) {
            // Without the advice the octets stay cached until the system needs the memory.
            let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
            let _ = posix_fadvise(&*self, start, length, advice);
        }
    }
}

/// Makes a directory for one user and group; false if the directory exists already.
pub(crate) fn make_folder(path: &Path) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes a file for one user and group, which must not exist.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Writes all pieces, in as many calls as the system needs.
pub(super) fn write_all(output: &mut dyn Output, pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
    let mut rest = pieces;
    // Empty pieces would look like a full disk.
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match output.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A random number for a segment.
pub(super) fn random() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}
