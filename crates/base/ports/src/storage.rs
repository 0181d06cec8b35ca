//! A directory of files as a log needs. Production uses a real directory. Tests use a directory in memory that loses
//! unsynced writes, tears writes, runs full or fails to sync.

use std::fmt::Debug;
use std::io;

/// A directory.
pub trait Storage: Clone + Debug + Send + 'static {
    /// A file of the directory.
    type File: StorageFile;

    /// The names of the files, in no particular order.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file, which must not exist. The creation survives a crash once the directory is synced.
    ///
    /// # Errors
    ///
    /// The error of the system; `AlreadyExists`.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    ///
    /// The error of the system; `NotFound`.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Removes a file. The removal survives a crash once the directory is synced.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file, replacing any file of the new name. The rename survives a crash once the directory is synced.
    ///
    /// # Errors
    ///
    /// The error of the system; `NotFound`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Persists creations, removals and renames.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn sync(&self) -> io::Result<()>;
}

/// A file, shared by writers and syncing threads.
pub trait StorageFile: Clone + Debug + Send + 'static {
    /// The length in octets.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    ///
    /// The error of the system; `UnexpectedEof` when the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Announces a read of the octets, so that the system can read ahead.
    fn will_need(&self, offset: u64, octets: u64) {
        let _ = (offset, octets);
    }

    /// Announces that nothing of the file is read or written in the near future, so that the system can use the memory of
    /// its cached octets for others. Octets that are not synced stay cached.
    fn set_aside(&self) {}

    /// Writes both parts consecutively at `offset`.
    ///
    /// # Errors
    ///
    /// The error of the system; `StorageFull`. A part of the octets may have been written.
    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Sets blocks aside for the first `len` octets.
    ///
    /// # Errors
    ///
    /// The error of the system; `StorageFull`.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Brings the content to stable storage. A failure is final for all earlier writes.
    ///
    /// # Errors
    ///
    /// The error of the system.
    fn sync(&self) -> io::Result<()>;
}
