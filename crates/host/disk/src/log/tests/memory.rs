//! A directory in memory that loses, tears and refuses like a bad day.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use vere_ports::storage::{Storage, StorageFile};

/// What was done to a file since its last sync.
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
}

#[derive(Debug, Default)]
pub(super) struct FileState {
    /// What a reader sees.
    pub(super) data: Vec<u8>,
    /// What is on the disk.
    durable: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Default)]
pub(super) struct DiskState {
    names: BTreeMap<String, MemoryFile>,
    durable_names: BTreeMap<String, MemoryFile>,
    /// Octets that fit in.
    pub(super) capacity: Option<u64>,
    /// Octets that were read.
    pub(super) read: u64,
    /// Syncs fail, and what was not synced is then taken for clean.
    pub(super) fail_syncs: bool,
}

#[derive(Debug, Clone)]
pub(super) struct MemoryFile {
    state: Arc<Mutex<FileState>>,
    disk: Arc<Mutex<DiskState>>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct MemoryDisk(pub(super) Arc<Mutex<DiskState>>);

/// Decides what a crash keeps.
pub(super) trait Fate {
    /// A number below `bound`.
    fn pick(&mut self, bound: usize) -> usize;
}

impl MemoryDisk {
    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock().unwrap()
    }

    /// Power fails: of what was not synced any part may be there, torn or not.
    pub(super) fn crash(&self, fate: &mut dyn Fate) {
        let mut disk = self.lock();
        disk.fail_syncs = false;
        if fate.pick(2) == 0 {
            disk.names = disk.durable_names.clone();
        }
        disk.durable_names = disk.names.clone();
        for file in disk.names.values() {
            let mut file = file.state.lock().unwrap();
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

    pub(super) fn file(&self, name: &str) -> Option<Vec<u8>> {
        let file = self.lock().names.get(name)?.clone();
        let data = file.state.lock().unwrap().data.clone();
        Some(data)
    }

    /// Changes a file behind everybody's back.
    pub(super) fn set_file(&self, name: &str, data: Option<Vec<u8>>) {
        let mut disk = self.lock();
        match data {
            Some(data) => {
                let mut file = disk.names[name].state.lock().unwrap();
                *file = FileState {
                    durable: data.clone(),
                    data,
                    pending: Vec::new(),
                };
            }
            None => {
                disk.names.remove(name);
            }
        }
    }

    /// A disk with the same files, to be damaged.
    pub(super) fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, file) in &self.lock().names {
            let file = file.state.lock().unwrap();
            let data = file.data.clone();
            let state = FileState {
                durable: data.clone(),
                data,
                pending: Vec::new(),
            };
            let file = MemoryFile {
                state: Arc::new(Mutex::new(state)),
                disk: Arc::clone(&copy.0),
            };
            copy.lock().names.insert(name.clone(), file);
        }
        copy
    }
}

impl Storage for MemoryDisk {
    type File = MemoryFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let mut disk = self.lock();
        if disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = MemoryFile {
            state: Arc::default(),
            disk: Arc::clone(&self.0),
        };
        disk.names.insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        self.lock()
            .names
            .get(name)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock()
            .names
            .remove(name)
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.lock();
        let file = disk.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        disk.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.lock();
        if disk.fail_syncs {
            return Err(io::Error::other("sync failed"));
        }
        disk.durable_names = disk.names.clone();
        Ok(())
    }
}

impl MemoryFile {
    fn change(&self, change: Change) -> io::Result<()> {
        let capacity = self.disk.lock().unwrap().capacity;
        let mut state = self.state.lock().unwrap();
        let mut data = state.data.clone();
        change.apply(&mut data, usize::MAX);
        let grown = data.len().saturating_sub(state.data.len()) as u64;
        drop(state);
        if let Some(capacity) = capacity
            && grown > 0
            && self.used() + grown > capacity
        {
            // Half of it is there, as with a real disk.
            let mut state = self.state.lock().unwrap();
            let part = data.len().min(state.data.len() + grown as usize / 2);
            state.data = data[..part].to_vec();
            return Err(io::ErrorKind::StorageFull.into());
        }
        state = self.state.lock().unwrap();
        state.data = data;
        state.pending.push(change);
        Ok(())
    }

    fn used(&self) -> u64 {
        let files: Vec<_> = self.disk.lock().unwrap().names.values().cloned().collect();
        files
            .iter()
            .map(|file| file.state.lock().unwrap().data.len() as u64)
            .sum()
    }
}

impl StorageFile for MemoryFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state.lock().unwrap().data.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.lock().unwrap().read += buffer.len() as u64;
        let state = self.state.lock().unwrap();
        let octets = state
            .data
            .get(offset as usize..)
            .and_then(|data| data.get(..buffer.len()));
        buffer.copy_from_slice(octets.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, parts: [&[u8]; 2], offset: u64) -> io::Result<()> {
        self.change(Change::Write(offset, parts.concat()))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.change(Change::Truncate(len))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        self.change(Change::Truncate(len))
    }

    fn sync(&self) -> io::Result<()> {
        let failing = self.disk.lock().unwrap().fail_syncs;
        let mut state = self.state.lock().unwrap();
        let pending = std::mem::take(&mut state.pending);
        if failing {
            return Err(io::Error::other("sync failed"));
        }
        for change in pending {
            let FileState { durable, .. } = &mut *state;
            change.apply(durable, usize::MAX);
        }
        Ok(())
    }
}
