//! A directory of files as a log needs it. Production uses the real one; tests use one in memory that
//! loses what was not synced, tears writes, runs full or fails to sync.

use std::fmt::Debug;
use std::io;

/// A directory.
pub trait Storage: Clone + Debug + Send + 'static {
    /// A file in it.
    type File: StorageFile;

    /// The names of its files, in no order.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes a file that does not exist yet. It lasts once the directory is synced.
    ///
    /// # Errors
    ///
    /// What the system says; `AlreadyExists`.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    ///
    /// What the system says; `NotFound`.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Removes a file. It is gone for good once the directory is synced.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, in place of the file of that name if there is one. It lasts once the
    /// directory is synced.
    ///
    /// # Errors
    ///
    /// What the system says; `NotFound`.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes creations, removals and names last.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}

/// A file, shared by whoever writes and whoever syncs.
pub trait StorageFile: Clone + Debug + Send + 'static {
    /// Octets in it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are none.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    ///
    /// What the system says; `UnexpectedEof` when the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Says that these octets will be read soon; whoever can reads them ahead.
    fn will_need(&self, offset: u64, octets: u64) {
        let _ = (offset, octets);
    }

    /// Writes both parts, one after the other, at `offset`.
    ///
    /// # Errors
    ///
    /// What the system says; `StorageFull`. Part of it may have been written.
    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Sets blocks aside for the first `len` octets.
    ///
    /// # Errors
    ///
    /// What the system says; `StorageFull`.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Brings its content to stable storage. A failure is final for what was written before.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync(&self) -> io::Result<()>;
}
