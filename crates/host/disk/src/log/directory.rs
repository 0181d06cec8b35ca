//! The real directory.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{OFlag, PosixFadviseAdvice, openat, posix_fadvise, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use vere_ports::storage::{Storage, StorageFile};

/// Octets read by this process from files in log directories.
static READ: AtomicU64 = AtomicU64::new(0);

/// Octets that this process read of logs since it began, for the progress of a start.
#[must_use]
pub fn octets_read() -> u64 {
    READ.load(Ordering::Relaxed)
}

/// Readable and writable by the owner only: the files contain mail.
const MODE: Mode = Mode::S_IRUSR.union(Mode::S_IWUSR);

/// A directory of the file system. The handle follows the directory over a rename: a thread that still
/// works in an abandoned directory never touches its replacement.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    handle: Arc<File>,
}

/// A file in a directory.
#[derive(Debug, Clone)]
pub struct DirectoryFile(Arc<File>);

impl Directory {
    /// Opens a directory that exists.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            handle: Arc::new(File::open(path)?),
        })
    }

    fn open_with(&self, name: &str, flags: OFlag) -> io::Result<DirectoryFile> {
        let flags = flags | OFlag::O_RDWR | OFlag::O_CLOEXEC;
        let file = openat(&*self.handle, name, flags, MODE)?;
        Ok(DirectoryFile(Arc::new(File::from(file))))
    }
}

impl Storage for Directory {
    type File = DirectoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            // A name that is not UTF-8 is no name of the log.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<DirectoryFile> {
        self.open_with(name, OFlag::O_CREAT | OFlag::O_EXCL)
    }

    fn open(&self, name: &str) -> io::Result<DirectoryFile> {
        self.open_with(name, OFlag::empty())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        unlinkat(&*self.handle, name, UnlinkatFlags::NoRemoveDir).map_err(io::Error::from)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        renameat(&*self.handle, from, &*self.handle, to).map_err(io::Error::from)
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

impl StorageFile for DirectoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)?;
        READ.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn will_need(&self, offset: u64, octets: u64) {
        if let (Ok(offset), Ok(octets)) = (i64::try_from(offset), i64::try_from(octets)) {
            // Without the advice the octets are read on demand.
            let advice = PosixFadviseAdvice::POSIX_FADV_WILLNEED;
            let _ = posix_fadvise(&*self.0, offset, octets, advice);
        }
    }

    fn set_aside(&self) {
        // Without the advice the octets stay cached until the system needs the memory.
        let _ = posix_fadvise(&*self.0, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }

    fn write_at(&self, parts: [&[u8]; 2], mut offset: u64) -> io::Result<()> {
        let mut slices = parts.map(IoSlice::new);
        let mut left = slices.as_mut_slice();
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let at = i64::try_from(offset).map_err(io::Error::other)?;
            match nix::sys::uio::pwritev(&*self.0, left, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    offset += count as u64;
                    IoSlice::advance_slices(&mut left, count);
                }
                Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let len = i64::try_from(len).map_err(io::Error::other)?;
        nix::fcntl::posix_fallocate(&*self.0, 0, len).map_err(io::Error::from)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
