//! A directory in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vere_ports::storage::{Storage, StorageFile};

use crate::Fate;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A change of a file since its last sync.
#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl Change {
    fn apply(&self, data: &mut Vec<u8>, torn_to: usize) {
        match self {
            Self::Write(offset, octets) => {
                let octets = &octets[..octets.len().min(torn_to)];
                let (start, end) = (*offset as usize, *offset as usize + octets.len());
                if data.len() < end {
                    data.resize(end, 0);
                }
                data[start..end].copy_from_slice(octets);
            }
            Self::Truncate(len) => data.resize(*len as usize, 0),
        }
    }

    /// The length of a file of `len` octets after the change.
    fn len_after(&self, len: u64) -> u64 {
        match self {
            Self::Write(offset, octets) => len.max(offset + octets.len() as u64),
            Self::Truncate(len) => *len,
        }
    }
}

#[derive(Debug, Default)]
struct FileState {
    /// The octets visible to a reader.
    data: Vec<u8>,
    /// The octets on the disk.
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl FileState {
    /// A write fails half-way.
    fn tear(&mut self, change: &Change) {
        if let Change::Write(offset, octets) = change {
            let half = Change::Write(*offset, octets[..octets.len() / 2].to_vec());
            half.apply(&mut self.data, usize::MAX);
            self.pending.push(half);
        }
    }
}

#[derive(Debug, Default)]
struct DiskState {
    /// A directory holds no [`MemoryFile`]: files hold their disk, and neither would ever be freed.
    names: BTreeMap<String, SharedFile>,
    durable_names: BTreeMap<String, SharedFile>,
    /// Creations, removals and renames since the last sync, in order.
    pending_names: Vec<NameChange>,
    capacity: Option<u64>,
    fail_syncs: bool,
    fail_reads: bool,
    /// Changes and syncs until now.
    steps: u64,
    /// The step from which all calls fail.
    stop_at: Option<u64>,
    /// The step that fails, with half of its octets written.
    fail_at: Option<u64>,
    /// Announced reads: offsets and lengths.
    needed: Vec<(u64, u64)>,
    /// Octets read until now.
    read: u64,
}

/// A change of a directory since its last sync.
#[derive(Debug, Clone)]
enum NameChange {
    Put(String, SharedFile),
    Remove(String),
    Rename(String, String),
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, SharedFile>) {
        match self {
            Self::Put(name, file) => drop(names.insert(name.clone(), file.clone())),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

impl DiskState {
    fn step(&mut self) -> io::Result<()> {
        if self.is_off() {
            return Err(io::Error::other("the power is off"));
        }
        self.steps += 1;
        if self.fail_at == Some(self.steps) {
            return Err(io::Error::other("the disk failed"));
        }
        Ok(())
    }

    fn is_off(&self) -> bool {
        self.stop_at.is_some_and(|stop| self.steps >= stop)
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }
}

/// The octets of a file, shared by all who have the file open.
type SharedFile = Arc<Mutex<FileState>>;

/// A file on a [`MemoryDisk`].
#[derive(Debug, Clone)]
pub struct MemoryFile {
    state: SharedFile,
    disk: Arc<Mutex<DiskState>>,
}

/// A directory in memory; clones share the directory.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<DiskState>>);

impl MemoryDisk {
    /// What was said to be read soon since the last call: offsets in files, and lengths.
    pub fn take_needed(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut lock(&self.0).needed)
    }

    /// Simulates a power cut: any part of the unsynced octets may survive, torn or not.
    pub fn crash(&self, fate: &mut dyn Fate) {
        let mut disk = lock(&self.0);
        (disk.fail_syncs, disk.fail_reads) = (false, false);
        (disk.stop_at, disk.fail_at) = (None, None);
        // Directories are journaled: nothing since the last sync survives, or a prefix of the changes.
        let pending = std::mem::take(&mut disk.pending_names);
        let survive = match fate.pick(2) {
            0 => 0,
            _ => fate.pick(pending.len() + 1),
        };
        let mut names = std::mem::take(&mut disk.durable_names);
        for change in &pending[..survive] {
            change.apply(&mut names);
        }
        disk.durable_names.clone_from(&names);
        disk.names = names;
        for file in disk.names.values() {
            let mut file = lock(file);
            let mut data = file.durable.clone();
            for change in std::mem::take(&mut file.pending) {
                match fate.pick(3) {
                    0 => change.apply(&mut data, usize::MAX),
                    1 => change.apply(&mut data, fate.pick(200)),
                    _ => {}
                }
            }
            file.data.clone_from(&data);
            file.durable = data;
        }
    }

    /// Limits the further octets that the disk can hold.
    pub fn set_capacity(&self, octets: Option<u64>) {
        lock(&self.0).capacity = octets;
    }

    /// Octets in all files.
    #[must_use]
    pub fn used(&self) -> u64 {
        used(&lock(&self.0))
    }

    /// Whether syncs fail from now on, and what was not synced is then taken for clean.
    pub fn fail_syncs(&self, fail: bool) {
        lock(&self.0).fail_syncs = fail;
    }

    /// Whether reads fail from now on, until the next crash.
    pub fn fail_reads(&self, fail: bool) {
        lock(&self.0).fail_reads = fail;
    }

    /// The change or sync with this number fails, and the next ones do not. Half of the octets of a write are there.
    pub fn fail_at(&self, step: u64) {
        lock(&self.0).fail_at = Some(step);
    }

    /// Whether the power is off: [`Self::stop_at`].
    #[must_use]
    pub fn is_off(&self) -> bool {
        lock(&self.0).is_off()
    }

    /// Octets read until now.
    #[must_use]
    pub fn read_octets(&self) -> u64 {
        lock(&self.0).read
    }

    /// Changes and syncs until now.
    #[must_use]
    pub fn steps(&self) -> u64 {
        lock(&self.0).steps
    }

    /// From this step on every call fails, until the next crash.
    pub fn stop_at(&self, step: u64) {
        lock(&self.0).stop_at = Some(step);
    }

    /// The octets of a file as visible to a reader.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let file = lock(&self.0).names.get(name)?.clone();
        let data = lock(&file).data.clone();
        Some(data)
    }

    /// Changes or removes a file behind everybody's back.
    ///
    /// # Panics
    /// When a file that is to be changed does not exist: the test would damage nothing.
    pub fn set_file(&self, name: &str, data: Option<Vec<u8>>) {
        let mut disk = lock(&self.0);
        match (data, disk.names.get(name)) {
            (Some(data), Some(file)) => {
                let mut file = lock(file);
                (file.durable, file.data) = (data.clone(), data);
                file.pending.clear();
            }
            (Some(_), None) => panic!("no file {name} to change"),
            (None, _) => drop(disk.names.remove(name)),
        }
    }

    /// A disk with the same files, all synced, to be damaged.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, file) in &lock(&self.0).names {
            let data = lock(file).data.clone();
            let state = FileState {
                durable: data.clone(),
                data,
                pending: Vec::new(),
            };
            let file: SharedFile = Arc::new(Mutex::new(state));
            let mut disk = lock(&copy.0);
            disk.names.insert(name.clone(), file.clone());
            disk.durable_names.insert(name.clone(), file);
        }
        copy
    }
}

impl Storage for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(lock(&self.0).names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let mut disk = lock(&self.0);
        disk.step()?;
        if disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = MemoryFile {
            state: Arc::default(),
            disk: Arc::clone(&self.0),
        };
        disk.change_names(NameChange::Put(name.to_owned(), Arc::clone(&file.state)));
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let disk = lock(&self.0);
        if disk.fail_reads {
            return Err(io::Error::other("read failed"));
        }
        let state = disk.names.get(name).cloned();
        let state = state.ok_or(io::ErrorKind::NotFound)?;
        Ok(MemoryFile {
            state,
            disk: Arc::clone(&self.0),
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = lock(&self.0);
        disk.step()?;
        if !disk.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.change_names(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = lock(&self.0);
        disk.step()?;
        if !disk.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        disk.change_names(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = lock(&self.0);
        disk.step()?;
        if disk.fail_syncs {
            return Err(io::Error::other("sync failed"));
        }
        disk.durable_names = disk.names.clone();
        disk.pending_names.clear();
        Ok(())
    }
}

impl MemoryFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut disk = lock(&self.disk);
        let was_off = disk.is_off();
        if let Err(error) = disk.step() {
            if !was_off {
                lock(&self.state).tear(&change);
            }
            return Err(error);
        }
        let capacity = disk.capacity;
        let len = lock(&self.state).data.len() as u64;
        let grown = change.len_after(len).saturating_sub(len);
        if let Some(capacity) = capacity
            && grown > 0
            && used(&disk) + grown > capacity
        {
            // Half of the octets are written, as on a real disk.
            let mut state = lock(&self.state);
            change.apply(&mut state.data, usize::MAX);
            state.data.truncate((len + grown / 2) as usize);
            return Err(io::ErrorKind::StorageFull.into());
        }
        drop(disk);
        let mut state = lock(&self.state);
        change.apply(&mut state.data, usize::MAX);
        state.pending.push(change);
        Ok(())
    }
}

fn used(disk: &DiskState) -> u64 {
    let files = disk.names.values();
    files.map(|file| lock(file).data.len() as u64).sum()
}

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.state).data.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        {
            let mut disk = lock(&self.disk);
            if disk.fail_reads {
                return Err(io::Error::other("read failed"));
            }
            disk.read += buffer.len() as u64;
        }
        let state = lock(&self.state);
        let octets = state.data.get(offset as usize..);
        let octets = octets.and_then(|data| data.get(..buffer.len()));
        buffer.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn will_need(&self, offset: u64, octets: u64) {
        lock(&self.disk).needed.push((offset, octets));
    }

    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()> {
        self.change(Change::Write(offset, parts.concat()))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.change(Change::Truncate(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let now = self.len()?;
        self.change(Change::Truncate(len.max(now)))
    }

    fn sync(&self) -> io::Result<()> {
        let failing = {
            let mut disk = lock(&self.disk);
            let was_off = disk.is_off();
            match disk.step() {
                Err(error) if was_off => return Err(error),
                step => step.is_err() || disk.fail_syncs,
            }
        };
        let mut state = lock(&self.state);
        let pending = std::mem::take(&mut state.pending);
        if failing {
            return Err(io::Error::other("sync failed"));
        }
        let FileState { durable, .. } = &mut *state;
        pending
            .iter()
            .for_each(|change| change.apply(durable, usize::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_ends_with_its_last_owner() {
        let disk = MemoryDisk::default();
        drop(disk.create("file").expect("room"));
        let weak = Arc::downgrade(&disk.0);
        drop(disk.copy());
        drop(disk);
        assert!(weak.upgrade().is_none());
    }
}
