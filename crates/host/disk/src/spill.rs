//! The spill store of a node: one file without a name, in blocks of a segment's length.
//!
//! The file is removed as soon as it is open, so that no file remains after a crash. Reads and writes
//! bypass the page cache where the file system supports that: spilled records are not wanted in memory,
//! and a process in a memory-limited group would stall on the dirty pages. A single thread writes and
//! several threads read, so that a reader of a record does not wait for writes, and a disk with
//! parallel operations gets several reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};
use nix::sys::statvfs::fstatvfs;
use vere_ports::spill::{SpillDone, SpillFull, SpillSlot, SpillStore};

use crate::log::Wake;

/// The name of the file between creation and removal.
const NAME: &str = "spill";
/// Alignment of offsets, lengths and addresses, to bypass the page cache.
const ALIGN: usize = 4096;
/// Octets read or written by one system call.
const CHUNK: usize = 2 << 20;
/// Threads that read.
const READERS: usize = 3;

/// Sizes of a spill store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillOptions {
    /// The most octets of the file.
    pub room: u64,
    /// Octets of disk left for other files.
    pub spare: u64,
    /// Octets of a block: the usual length of what is written.
    pub block_len: usize,
}

/// Blocks of the file, taken from the beginning.
#[derive(Debug, Default)]
struct Blocks {
    /// Free blocks before `end`.
    free: BTreeSet<u64>,
    end: u64,
}

impl Blocks {
    fn used(&self) -> u64 {
        self.end - self.free.len() as u64
    }

    fn take(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        })
    }

    fn give(&mut self, block: u64) {
        self.free.insert(block);
        while self.end > 0 && self.free.remove(&(self.end - 1)) {
            self.end -= 1;
        }
    }
}

/// The content of a slot.
#[derive(Debug)]
struct Extent {
    len: usize,
    blocks: Arc<[u64]>,
}

enum Job {
    Write(SpillSlot, Arc<[u64]>, Vec<u8>, usize),
    Read(SpillSlot, Arc<[u64]>, Vec<u8>, usize),
    /// Everything from here on is given back to the system.
    Cut(u64),
}

struct Done {
    done: SpillDone,
    written: bool,
}

/// A spill store in a real file.
pub struct SpillFile {
    options: SpillOptions,
    blocks: Blocks,
    slots: BTreeMap<SpillSlot, Extent>,
    last: u64,
    used: u64,
    /// Number of blocks up to which the file was extended.
    grown: u64,
    under_way: usize,
    writer: Sender<Job>,
    reader: Sender<Job>,
    done: Receiver<Done>,
}

impl std::fmt::Debug for SpillFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpillFile")
            .field("options", &self.options)
            .field("used", &self.used)
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

impl SpillFile {
    /// Makes the store in a directory, creating a missing directory, and starts the threads. The
    /// threads call `wake` after every job.
    ///
    /// # Errors
    ///
    /// The error of the operating system.
    pub fn open(directory: &Path, options: SpillOptions, wake: &Wake) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let (file, direct) = make(&directory.join(NAME))?;
        Self::on(file, direct, options, wake)
    }

    fn on(file: File, direct: bool, options: SpillOptions, wake: &Wake) -> io::Result<Self> {
        let options = SpillOptions {
            block_len: options.block_len.next_multiple_of(ALIGN).max(ALIGN),
            ..options
        };
        let file = Arc::new(file);
        let (results, done) = channel();
        let start = |name: &str, threads: usize| {
            let (sender, jobs) = channel();
            let jobs = Arc::new(Mutex::new(jobs));
            for _ in 0..threads {
                let mut worker = Worker {
                    file: Arc::clone(&file),
                    options,
                    direct,
                    buffer: Aligned::new(),
                };
                let (results, wake) = (results.clone(), Arc::clone(wake));
                let jobs = Arc::clone(&jobs);
                std::thread::Builder::new()
                    .name(name.to_owned())
                    .spawn(move || worker.run(&jobs, &results, &wake))?;
            }
            Ok::<_, io::Error>(sender)
        };
        // Writes and cuts of the file need an order, hence a single thread.
        let (writer, reader) = (start("spill-write", 1)?, start("spill-read", READERS)?);
        Ok(Self {
            options,
            blocks: Blocks::default(),
            slots: BTreeMap::new(),
            last: 0,
            used: 0,
            grown: 0,
            under_way: 0,
            writer,
            reader,
            done,
        })
    }

    fn forget(&mut self, slot: SpillSlot) {
        let Some(extent) = self.slots.remove(&slot) else {
            return;
        };
        self.used -= extent.len as u64;
        for block in &*extent.blocks {
            self.blocks.give(*block);
        }
        // Not for every block: the file grows again as fast.
        if self.blocks.end <= self.grown / 2 {
            self.grown = self.blocks.end;
            // Without the writing thread there are no more writes either.
            let _ = self.writer.send(Job::Cut(self.grown));
        }
    }

    fn take(&mut self, done: Done) -> SpillDone {
        self.under_way -= 1;
        if done.written && done.done.result.is_err() {
            self.forget(done.done.slot);
        }
        done.done
    }
}

impl SpillStore for SpillFile {
    fn write(&mut self, octets: Vec<u8>, len: usize) -> Result<SpillSlot, SpillFull> {
        let count = len.div_ceil(self.options.block_len).max(1) as u64;
        let blocks = self.blocks.used() + count;
        if blocks.saturating_mul(self.options.block_len as u64) > self.options.room {
            return Err(SpillFull { octets });
        }
        self.last += 1;
        let slot = SpillSlot(self.last);
        let blocks: Arc<[u64]> = (0..count).map(|_| self.blocks.take()).collect();
        self.grown = self.grown.max(self.blocks.end);
        let job = Job::Write(slot, Arc::clone(&blocks), octets, len);
        self.slots.insert(slot, Extent { len, blocks });
        self.used += len as u64;
        match self.writer.send(job) {
            Ok(()) => {
                self.under_way += 1;
                Ok(slot)
            }
            Err(error) => {
                self.forget(slot);
                let octets = match error.0 {
                    Job::Write(_, _, octets, _) | Job::Read(_, _, octets, _) => octets,
                    Job::Cut(_) => Vec::new(),
                };
                Err(SpillFull { octets })
            }
        }
    }

    fn read(&mut self, slot: SpillSlot, into: Vec<u8>) {
        if let Some(extent) = self.slots.get(&slot) {
            let job = Job::Read(slot, Arc::clone(&extent.blocks), into, extent.len);
            // Without the reading thread no answer comes; the thread ends only with the store.
            if self.reader.send(job).is_ok() {
                self.under_way += 1;
            }
        }
    }

    fn free(&mut self, slot: SpillSlot) {
        self.forget(slot);
    }

    fn poll(&mut self) -> Option<SpillDone> {
        let done = self.done.try_recv().ok()?;
        Some(self.take(done))
    }

    fn wait(&mut self) -> Option<SpillDone> {
        if self.under_way == 0 {
            return None;
        }
        let done = self.done.recv().ok()?;
        Some(self.take(done))
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn room(&self) -> u64 {
        let taken = (self.blocks.used()).saturating_mul(self.options.block_len as u64);
        self.options.room.saturating_sub(taken)
    }
}

/// Makes the file, without a name, and says whether it goes past the page cache.
fn make(path: &Path) -> io::Result<(File, bool)> {
    let open = |direct: bool| {
        // A crash between creation and removal left a file.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        if direct {
            options.custom_flags(OFlag::O_DIRECT.bits());
        }
        let file = options.open(path);
        match (std::fs::remove_file(path), file) {
            (Err(error), Ok(_)) => Err(error),
            (_, file) => file,
        }
    };
    // Some file systems refuse direct access at the open, others at the first write.
    let tried = open(true).and_then(|file| {
        file.write_all_at(Aligned::new().first(ALIGN), 0)?;
        Ok(file)
    });
    match tried {
        Ok(file) => Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok((open(false)?, false)),
        Err(error) => Err(error),
    }
}

/// A buffer at an address that is a multiple of [`ALIGN`].
struct Aligned {
    octets: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new() -> Self {
        let octets = vec![0; CHUNK + ALIGN];
        let start = octets.as_ptr().align_offset(ALIGN).min(ALIGN);
        Self { octets, start }
    }

    fn first(&mut self, len: usize) -> &mut [u8] {
        &mut self.octets[self.start..self.start + len]
    }
}

/// The next job for one of the waiting threads; `None` when the store is closed.
fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().ok()?.recv().ok()
}

/// The state of a thread.
struct Worker {
    file: Arc<File>,
    options: SpillOptions,
    direct: bool,
    buffer: Aligned,
}

impl Worker {
    fn run(&mut self, jobs: &Mutex<Receiver<Job>>, results: &Sender<Done>, wake: &Wake) {
        while let Some(job) = next(jobs) {
            let (slot, octets, result, written) = match job {
                Job::Write(slot, blocks, octets, len) => {
                    let result = self.write(&blocks, &octets[..len]);
                    (slot, octets, result, true)
                }
                Job::Read(slot, blocks, mut octets, len) => {
                    let result = self.read(&blocks, &mut octets[..len]);
                    (slot, octets, result, false)
                }
                Job::Cut(end) => {
                    // The uncut file takes space without further harm.
                    let _ = self.file.set_len(end * self.options.block_len as u64);
                    continue;
                }
            };
            let result = result.map_err(|error| error.to_string());
            let done = SpillDone {
                slot,
                octets,
                result,
            };
            if results.send(Done { done, written }).is_err() {
                return;
            }
            wake();
        }
    }

    fn write(&mut self, blocks: &[u64], octets: &[u8]) -> io::Result<()> {
        self.keep_spare(octets.len() as u64)?;
        let block_len = self.options.block_len;
        for (block, part) in blocks.iter().zip(octets.chunks(block_len)) {
            let offset = block * block_len as u64;
            for (index, chunk) in part.chunks(CHUNK).enumerate() {
                let buffer = self.buffer.first(chunk.len().next_multiple_of(ALIGN));
                buffer[..chunk.len()].copy_from_slice(chunk);
                self.file
                    .write_all_at(buffer, offset + (index * CHUNK) as u64)?;
            }
            if !self.direct {
                self.drop_pages(offset, part.len())?;
            }
        }
        Ok(())
    }

    fn read(&mut self, blocks: &[u64], octets: &mut [u8]) -> io::Result<()> {
        let block_len = self.options.block_len;
        for (block, part) in blocks.iter().zip(octets.chunks_mut(block_len)) {
            let offset = block * block_len as u64;
            for (index, chunk) in part.chunks_mut(CHUNK).enumerate() {
                let buffer = self.buffer.first(chunk.len().next_multiple_of(ALIGN));
                self.file
                    .read_exact_at(buffer, offset + (index * CHUNK) as u64)?;
                chunk.copy_from_slice(&buffer[..chunk.len()]);
            }
        }
        Ok(())
    }

    /// Pages of spilled records only waste memory.
    fn drop_pages(&self, offset: u64, len: usize) -> io::Result<()> {
        self.file.sync_data()?;
        let range = (i64::try_from(offset), i64::try_from(len));
        if let (Ok(offset), Ok(len)) = range {
            let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
            posix_fadvise(&*self.file, offset, len, advice)?;
        }
        Ok(())
    }

    fn keep_spare(&self, len: u64) -> io::Result<()> {
        let system = fstatvfs(&*self.file)?;
        let free = system
            .blocks_available()
            .saturating_mul(system.fragment_size());
        if free < self.options.spare.saturating_add(len) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
