//! The directory of a spool node: a lock, the node's incarnation, the reserve, and a directory with
//! the log of each group.
//!
//! ```text
//! lock          held by the process that uses the directory
//! node          magic "VERENODE" (8) | format version u32 = 1 | 0 u32 | incarnation u64 | crc32 u32
//! reserve       room set aside
//! group-0001/   name (the group's name), origin, mark, 0000000000000001.log, ...
//! new-0001/     a group that is being made, or a leftover of one: removed
//! damaged-0001/ a group whose log was damaged, until there is a whole one again; see `aside`
//! kept-0001/    one of which nobody knows whose it was: left to people, the newest few
//! ```

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use vere_ports::spool_log::{
    LogError, LogOutliner, LogReader, OpenLogError, SpoolLogStore, UnreadableEntry,
};
use vere_ports::storage::{Storage, StorageFile};

use super::aside::{Aside, newest_head};
use super::directory::Directory;
use super::indexer::{Indexing, run_indexing};
use super::origin;
use super::reading::run_reads;
use super::recover::{self, Common};
use super::redo::RedoLog;
use super::reserve::Reserve;
use super::sync::{Wake, run_jobs};

const NODE_MAGIC: &[u8; 8] = b"VERENODE";
const NODE_VERSION: u32 = 1;
const NODE_LEN: usize = 28;
/// How long a directory may stay locked before it counts as used.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Sizes of a node's logs.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Octets after which a new segment is begun.
    pub segment_len: u64,
    /// Octets of disk set aside for ending records when the disk is full.
    pub reserve_len: u64,
    /// The longest expected sync that the appending thread may run by itself, where a single message waits.
    /// Waking two threads for a sync costs some tens of microseconds; a node must not stop serving other
    /// connections for long.
    pub in_place_max: Duration,
    /// Makes the outlines of full segments for the next start; with `None` a start reads segments whole.
    pub outliner: Option<LogOutliner>,
    /// Octets of the newest full segments without outlines.
    pub index_behind: u64,
    /// The most damaged logs kept of unknown groups.
    pub kept_max: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_len: 64 << 20,
            reserve_len: 16 << 20,
            in_place_max: Duration::from_millis(2),
            outliner: None,
            index_behind: 128 << 20,
            kept_max: 4,
        }
    }
}

/// The log of a group in a real directory.
pub type DiskLog = RedoLog<Directory>;

/// A node's directory, locked.
#[derive(Debug)]
pub struct NodeDirectory {
    path: PathBuf,
    directory: Directory,
    common: Common<Directory>,
    incarnation: u64,
    aside: Aside,
    random: fn() -> io::Result<u64>,
    /// Held as long as the node directory and the syncing thread live.
    _lock: Arc<File>,
}

pub(super) fn io_error(file: &Path) -> impl FnOnce(io::Error) -> OpenLogError {
    let file = file.to_owned();
    move |error| OpenLogError::Io { file, error }
}

/// Eight unpredictable octets.
fn random() -> io::Result<u64> {
    use std::io::Read;
    let mut octets = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut octets)?;
    Ok(u64::from_le_bytes(octets))
}

/// Starts the threads for syncs, for reads and for indexes.
fn start_threads(
    options: LogOptions,
    reserve: Arc<Reserve<Directory>>,
    lock: &Arc<File>,
    wake: &Wake,
) -> io::Result<Common<Directory>> {
    let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(work).map(drop)
    };
    let (jobs, waiting) = mpsc::channel();
    let (held, woken) = (Arc::clone(lock), Arc::clone(wake));
    let sync = move || {
        run_jobs(&waiting, &woken);
        drop(held);
    };
    start("log-sync", Box::new(sync))?;
    let (reads, waiting) = mpsc::channel();
    let woken = Arc::clone(wake);
    start("log-read", Box::new(move || run_reads(&waiting, &woken)))?;
    let indexing = match options.outliner {
        None => None,
        Some(outliner) => {
            let (jobs, waiting) = mpsc::channel();
            let index = move || run_indexing(&waiting, &outliner);
            start("log-index", Box::new(index))?;
            Some(Indexing {
                behind: options.index_behind,
                jobs,
            })
        }
    };
    Ok(Common {
        segment_len: options.segment_len,
        in_place_max: options.in_place_max,
        jobs,
        reserve,
        reads,
        indexing,
    })
}

impl NodeDirectory {
    /// Opens the directory, creating a missing directory, and starts the threads of the log. `wake` is
    /// called on that thread whenever a sync is done.
    ///
    /// # Errors
    ///
    /// [`OpenLogError::Locked`] when another process uses the directory; [`OpenLogError::Damaged`] when the
    /// directory has logs but no incarnation.
    pub fn open(path: &Path, options: LogOptions, wake: Wake) -> Result<Self, OpenLogError> {
        std::fs::create_dir_all(path).map_err(io_error(path))?;
        let lock = Arc::new(take_lock(path)?);
        let directory = Directory::open(path).map_err(io_error(path))?;
        let incarnation = incarnation(&directory, path)?;
        let aside = Aside::find(path, &directory, options.kept_max)?;
        let reserve = Reserve::new(&directory, options.reserve_len);
        let reserve = reserve.map_err(io_error(&path.join("reserve")))?;
        let common = start_threads(options, reserve, &lock, &wake).map_err(io_error(path))?;
        Ok(Self {
            path: path.to_owned(),
            directory,
            common,
            incarnation,
            aside,
            random,
            _lock: lock,
        })
    }

    /// The incarnation of the directory's content; a new directory begins a new incarnation.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The groups that have a log, and their directories.
    ///
    /// # Errors
    ///
    /// [`OpenLogError::Damaged`] when a group's name cannot be read.
    pub fn groups(&self) -> Result<Vec<(String, PathBuf)>, OpenLogError> {
        let mut groups = Vec::new();
        for name in self.directory.list().map_err(io_error(&self.path))? {
            let path = self.path.join(&name);
            if name.starts_with("group-") {
                groups.push((group_name(&path)?, path));
            } else if name.starts_with("new-") {
                remove_leftover(&path).map_err(io_error(&path))?;
            }
        }
        groups.sort();
        Ok(groups)
    }

    /// Groups whose logs were set aside without a replacement before the process ended.
    ///
    /// # Errors
    ///
    /// As [`NodeDirectory::groups`].
    pub fn missing(&self) -> Result<Vec<(String, PathBuf)>, OpenLogError> {
        let there = self.groups()?;
        let missing = |group: &str| there.iter().all(|(name, _)| name != group);
        let aside = self.aside.groups().filter(|(group, _)| missing(group));
        Ok(aside.map(|(group, at)| (group.to_owned(), at)).collect())
    }

    /// The newest head that can be read in the directory of a group, whatever else is damaged there.
    #[must_use]
    pub fn newest_head(&self, path: &Path) -> Option<Vec<u8>> {
        newest_head(&Directory::open(path).ok()?)
    }

    /// The newest readable head among the set-aside logs of a group.
    #[must_use]
    pub fn newest_head_aside(&self, group: &str) -> Option<Vec<u8>> {
        self.aside.newest_head(group)
    }

    /// Opens and reads the log of a group.
    ///
    /// # Errors
    ///
    /// [`OpenLogError`]; the node must then not serve the group.
    pub fn open_group(
        &self,
        path: &Path,
        reader: &mut dyn LogReader,
    ) -> Result<DiskLog, OpenLogError> {
        let directory = Directory::open(path).map_err(io_error(path))?;
        let log = recover::open(directory.clone(), path, &self.common, reader)?;
        if origin::read(&directory).is_none() {
            renew_origin(&directory, path);
        }
        Ok(log)
    }

    fn create_group(&self, group: &str, head: &[u8]) -> Result<DiskLog, OpenLogError> {
        let taken = self.directory.list().map_err(io_error(&self.path))?;
        let free = |number: &u32| !taken.contains(&format!("group-{number:04}"));
        let number = (1_u32..).find(free).unwrap_or_default();
        let (new, path) = (
            self.path.join(format!("new-{number:04}")),
            self.path.join(format!("group-{number:04}")),
        );
        self.prepare_group(&new, group, head)
            .map_err(io_error(&new))?;
        std::fs::rename(&new, &path).map_err(io_error(&path))?;
        self.directory.sync().map_err(io_error(&self.path))?;
        self.open_group(&path, &mut Nothing)
    }

    fn prepare_group(&self, path: &Path, group: &str, head: &[u8]) -> io::Result<()> {
        remove_leftover(path)?;
        std::fs::create_dir(path)?;
        let directory = Directory::open(path)?;
        write_whole(&directory, "name", group.as_bytes())?;
        origin::write(&directory, head)?;
        recover::create(directory, &self.common, (self.random)()?, head)?;
        Ok(())
    }
}

/// Writes the origin of a sound log, missing in logs of earlier versions. Without the origin the log is
/// still sound.
fn renew_origin(directory: &Directory, path: &Path) {
    let Some(head) = newest_head(directory) else {
        return;
    };
    if let Err(error) = origin::write(directory, &head) {
        tracing::warn!(directory = %path.display(), %error, "cannot write the origin of a log");
    }
}

/// Reads a log without entries.
struct Nothing;

impl LogReader for Nothing {
    fn head(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        Ok(())
    }

    fn entry(&mut self, _: u64, _: &[u8]) -> Result<(), UnreadableEntry> {
        Err(UnreadableEntry("entry in a new log".to_owned()))
    }
}

pub(super) fn remove_leftover(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl SpoolLogStore for NodeDirectory {
    type Log = DiskLog;

    fn create(&mut self, group: &str, head: &[u8]) -> Result<DiskLog, LogError> {
        self.create_group(group, head).map_err(log_error)
    }

    fn replace(&mut self, group: &str, head: &[u8]) -> Result<DiskLog, LogError> {
        let groups = self.groups().map_err(log_error)?;
        let of_group = groups.into_iter().filter(|(name, _)| name == group);
        for (_, path) in of_group {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let put = self.aside.put(group, name).map_err(io_error(&path));
            put.map_err(log_error)?;
        }
        self.create(group, head)
    }

    fn remove(&mut self, group: &str) -> Result<(), LogError> {
        for (name, path) in self.groups().map_err(log_error)? {
            if name != group {
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str());
            let gone = self.aside.throw_away(name.unwrap_or_default());
            gone.map_err(io_error(&path)).map_err(log_error)?;
        }
        if self.is_aside(group) {
            self.discard(group);
        }
        Ok(())
    }

    fn is_aside(&self, group: &str) -> bool {
        self.aside.holds(group)
    }

    fn discard(&mut self, group: &str) {
        if let Err(error) = self.aside.discard(group) {
            // The log takes space until the next time that the group is found whole.
            tracing::warn!(group, %error, "cannot remove a damaged log");
        }
    }
}

fn log_error(error: OpenLogError) -> LogError {
    match error {
        OpenLogError::Io { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
            LogError::Full
        }
        other => LogError::Failed(other.to_string()),
    }
}

/// Locks a directory. A process that is just ending may still hold the lock.
fn take_lock(path: &Path) -> Result<File, OpenLogError> {
    let file = path.join("lock");
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let lock = options.open(&file).map_err(io_error(&file))?;
    let patience = Instant::now() + LOCK_PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() >= patience => {
                return Err(OpenLogError::Locked { file });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PATIENCE / 100),
            Err(TryLockError::Error(error)) => return Err(io_error(&file)(error)),
        }
    }
}

/// Writes a file atomically.
pub(super) fn write_whole(directory: &Directory, name: &str, octets: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.new");
    match directory.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = directory.create(&temporary)?;
    file.write_at([octets, &[]], 0)?;
    file.sync()?;
    directory.rename(&temporary, name)?;
    directory.sync()
}

/// The name of the group in a directory.
pub(super) fn group_name(path: &Path) -> Result<String, OpenLogError> {
    let file = path.join("name");
    let damaged = |reason: &str| OpenLogError::Damaged {
        file: file.clone(),
        offset: 0,
        reason: reason.to_owned(),
    };
    match std::fs::read(&file) {
        Ok(name) => String::from_utf8(name).map_err(|_| damaged("name is not text")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(damaged("file is missing")),
        Err(error) => Err(io_error(&file)(error)),
    }
}

fn incarnation(directory: &Directory, path: &Path) -> Result<u64, OpenLogError> {
    let file = path.join("node");
    let damaged = |reason: &str| OpenLogError::Damaged {
        file: file.clone(),
        offset: 0,
        reason: reason.to_owned(),
    };
    let octets = match std::fs::read(&file) {
        Ok(octets) => octets,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let names = directory.list().map_err(io_error(path))?;
            if names.iter().any(|name| name.starts_with("group-")) {
                return Err(damaged("file is missing"));
            }
            return begin(directory).map_err(io_error(&file));
        }
        Err(error) => return Err(io_error(&file)(error)),
    };
    let Some((octets, [])) = octets.split_first_chunk::<NODE_LEN>() else {
        return Err(damaged("length is wrong"));
    };
    let field = |at: usize| {
        octets[at..]
            .first_chunk()
            .map_or(0, |field| u32::from_le_bytes(*field))
    };
    if !octets.starts_with(NODE_MAGIC) || field(24) != vere_checksum::crc32(&octets[..24]) {
        return Err(damaged("checksum is wrong"));
    }
    match field(8) {
        NODE_VERSION => Ok(u64::from(field(16)) | u64::from(field(20)) << 32),
        version => Err(OpenLogError::Version { file, version }),
    }
}

fn begin(directory: &Directory) -> io::Result<u64> {
    let incarnation = random()?;
    let mut octets = Vec::with_capacity(NODE_LEN);
    octets.extend_from_slice(NODE_MAGIC);
    octets.extend_from_slice(&NODE_VERSION.to_le_bytes());
    octets.extend_from_slice(&[0; 4]);
    octets.extend_from_slice(&incarnation.to_le_bytes());
    octets.extend_from_slice(&vere_checksum::crc32(&octets).to_le_bytes());
    write_whole(directory, "node", &octets)?;
    Ok(incarnation)
}
