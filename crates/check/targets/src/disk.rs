//! A directory in memory that asserts the validity of its calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_ports::storage::{Storage, StorageFile};

/// The octets of a file.
type Octets = Arc<Mutex<Vec<u8>>>;

/// A directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<BTreeMap<String, Octets>>>);

/// A file in the directory.
#[derive(Debug, Clone)]
pub(crate) struct DiskFile(Octets);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    /// Puts a file there.
    pub(crate) fn put(&self, name: &str, octets: Vec<u8>) {
        lock(&self.0).insert(name.to_owned(), Arc::new(Mutex::new(octets)));
    }

    /// The octets of a file; empty for a missing file.
    pub(crate) fn octets(&self, name: &str) -> Vec<u8> {
        let files = lock(&self.0);
        files
            .get(name)
            .map(|file| lock(file).clone())
            .unwrap_or_default()
    }

    /// All files with their octets.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = lock(&self.0);
        let octets = |(name, file): (&String, &Octets)| (name.clone(), lock(file).clone());
        files.iter().map(octets).collect()
    }

    /// Another directory with the same files.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, octets) in self.files() {
            copy.put(&name, octets);
        }
        copy
    }

    fn named<T>(&self, name: &str, use_it: impl FnOnce(Octets) -> T) -> io::Result<T> {
        let file = lock(&self.0).get(name).cloned();
        file.map(use_it).ok_or(io::ErrorKind::NotFound.into())
    }
}

impl Storage for Disk {
    type File = DiskFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<DiskFile> {
        if lock(&self.0).contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.put(name, Vec::new());
        self.open(name)
    }

    fn open(&self, name: &str) -> io::Result<DiskFile> {
        self.named(name, DiskFile)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.named(name, drop)?;
        lock(&self.0).remove(name);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let octets = self.named(from, |file| lock(&file).clone())?;
        self.put(to, octets);
        self.remove(from)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len() as u64)
    }

    /// The caller has reserved memory for the read: never more than the size of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let octets = lock(&self.0);
        let bound = octets.len().max(4096);
        assert!(buffer.len() <= bound, "{} octets taken", buffer.len());
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = octets.get(from..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()> {
        let mut octets = lock(&self.0);
        let written = parts.concat();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = from.saturating_add(written.len());
        assert!(end <= (1 << 20), "writes far behind the end");
        if octets.len() < end {
            octets.resize(end, 0);
        }
        octets[from..end].copy_from_slice(&written);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut octets = lock(&self.0);
        assert!(len <= octets.len(), "a file is made longer");
        octets.truncate(len);
        Ok(())
    }

    fn allocate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
