//! The directory in a single TOML file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use vere_ports::directory::{
    Account, AccountName, Alias, Change, ChangeError, DirectoryStore, Domain, DomainName, Lookup,
    Page, Records, StoreError,
};

use super::{folder, format, give_to_owner_of_folder, make_folder, system};

/// How long a change waits for another process's change.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// How long a file edited in place must rest before it is read: an editor that truncates and writes would
/// otherwise make accounts vanish for a moment, and their mail would be refused.
const SETTLE: Duration = Duration::from_secs(1);
/// How long the open file alone is checked for changes. A replaced or edited file changes its own metadata; a
/// file does not when a parent directory is replaced.
const LOOK: Duration = Duration::from_secs(1);
/// How long an answer is used without a system call. A change is reported as done only after this time, so
/// that every later lookup finds the change in every process; a message costs no system call for each of its
/// addresses.
const FRESH: Duration = Duration::from_millis(2);
/// The largest file in octets; some 500,000 accounts, far beyond the purpose of this store.
const FILE_MAX: u64 = 256 << 20;

/// Domains, accounts and aliases in a single TOML file.
///
/// The whole content is kept in memory; a lookup checks the file for changes (one `fstat`, at most every 2 ms)
/// and reads a changed file again. A changed file that cannot be read leaves the old content in force and is
/// reported to the log once; changes are refused until the file is repaired.
///
/// A change is made under a lock (`flock` on a file beside it), based on the present content of the file, and
/// reaches the disk atomically: the new content is written to a temporary file, synced, renamed over the old
/// file, and the directory is synced. Other processes never see half of a change.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    opened: Instant,
    /// Until this time no system call checks the file: microseconds from `opened`.
    fresh_until: AtomicU64,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    /// The stamp of the file last read; `None` when there was no file.
    seen: Option<Stamp>,
    /// The file last read, kept open, and the last time its path was checked. `None`: each lookup checks the
    /// path.
    kept: Option<(File, Instant)>,
    records: Arc<Records>,
    /// The number of changes of the records.
    revision: u64,
}

impl State {
    /// Whether the file is unchanged since it was read, without a lookup of the path.
    fn is_current(&self) -> bool {
        let Some((file, looked)) = &self.kept else {
            return false;
        };
        looked.elapsed() < LOOK
            && file
                .metadata()
                .is_ok_and(|metadata| self.seen == Some(Stamp::of(&metadata)))
    }

    /// Keeps the file open, if the file is the file last read.
    fn keep(&mut self, path: &Path) {
        self.kept = File::open(path)
            .ok()
            .map(|file| (file, Instant::now()))
            .filter(|(file, _)| {
                file.metadata()
                    .is_ok_and(|metadata| self.seen == Some(Stamp::of(&metadata)))
            });
    }
}

/// The properties that distinguish one content of the file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64, Option<SystemTime>),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            // Inode numbers are reused; with the time of birth, where known, the number is unique.
            file: (metadata.dev(), metadata.ino(), metadata.created().ok()),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Says whether the file that was seen before was written to within the last moment.
    fn is_being_written(&self, seen: &Self) -> bool {
        self.file == seen.file && self.age() < SETTLE
    }

    /// Whether the file, if it is an edited file, was written within the last moment. A file written by this
    /// program is complete from its birth; an editor may be half way through.
    fn is_being_edited(&self) -> bool {
        let born = self.file.2;
        let lived = born.and_then(|born| self.modified().duration_since(born).ok());
        lived.is_some_and(|lived| lived > SETTLE) && self.age() < SETTLE
    }

    fn age(&self) -> Duration {
        // A time in the future comes from a clock that was set back, and is no reason to wait.
        SystemTime::now()
            .duration_since(self.modified())
            .unwrap_or(SETTLE)
    }

    fn modified(&self) -> SystemTime {
        let seconds = u64::try_from(self.modified.0).unwrap_or(0);
        let nanos = u32::try_from(self.modified.1).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos)
    }
}

impl FileStore {
    /// Opens a file, which must exist and be valid.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the file is missing or invalid.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Renaming over a symbolic link would replace the link.
        let path = path.canonicalize().map_err(system("open", path))?;
        let (text, stamp) = read(&path)?;
        let records = Arc::new(format::parse(&text, &path)?);
        Ok(Self {
            path,
            opened: Instant::now(),
            fresh_until: AtomicU64::new(0),
            state: RwLock::new(State {
                seen: Some(stamp),
                kept: None,
                records,
                revision: 0,
            }),
        })
    }

    /// Opens a file, or creates an empty file with its parent directories.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when the file cannot be created or is invalid.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        match Self::open(path) {
            Err(StoreError::System(..)) if !path.exists() => {}
            opened => return opened,
        }
        let parent = folder(path);
        make_folder(parent)?;
        let lock = lock(path)?;
        // Another process may have been faster.
        let made = !path.exists();
        if made {
            replace(path, format::EMPTY)?;
        }
        drop(lock);
        if made {
            wait_until_seen();
        }
        Self::open(path)
    }

    /// Returns the content in force.
    fn current(&self) -> Arc<Records> {
        // The time before the check: a change during the check is found that much later at most.
        let now = self.opened.elapsed();
        {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            if self.is_fresh(now) {
                return Arc::clone(&state.records);
            }
            if state.is_current() {
                self.note_asked(now);
                return Arc::clone(&state.records);
            }
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        self.look(&mut state);
        self.note_asked(now);
        Arc::clone(&state.records)
    }

    fn is_fresh(&self, now: Duration) -> bool {
        micros(now) < self.fresh_until.load(Ordering::Relaxed)
    }

    fn note_asked(&self, now: Duration) {
        self.fresh_until
            .store(micros(now + FRESH), Ordering::Relaxed);
    }

    /// Reads the file if its path leads to another content than before.
    fn look(&self, state: &mut State) {
        let now = fs::metadata(&self.path)
            .map(|metadata| Stamp::of(&metadata))
            .ok();
        if now == state.seen {
            state.keep(&self.path);
            return;
        }
        if let (Some(now), Some(seen)) = (&now, &state.seen)
            && now.is_being_written(seen)
        {
            return;
        }
        let fresh = read(&self.path)
            .and_then(|(text, stamp)| Ok((stamp, format::parse(&text, &self.path)?)));
        match fresh {
            Ok((stamp, records)) => {
                state.seen = Some(stamp);
                state.records = Arc::new(records);
                state.revision += 1;
                tracing::info!(file = %self.path.display(), "directory read again");
            }
            // The failed file is remembered as read, so that the error is reported, and the file parsed, only
            // once.
            Err(error) => {
                state.seen = now;
                tracing::error!(%error, "directory file refused, old content kept in force");
            }
        }
        state.keep(&self.path);
    }
}

impl Lookup for FileStore {
    fn domain(&self, name: &DomainName) -> Result<Option<Domain>, StoreError> {
        self.current().domain(name)
    }

    fn account(&self, name: &AccountName) -> Result<Option<Account>, StoreError> {
        self.current().account(name)
    }

    fn alias(&self, name: &AccountName) -> Result<Option<Alias>, StoreError> {
        self.current().alias(name)
    }

    fn count(&self, domain: &DomainName) -> Result<(usize, usize), StoreError> {
        self.current().count(domain)
    }
}

impl DirectoryStore for FileStore {
    fn apply(&self, change: &Change) -> Result<(), ChangeError> {
        let lock = lock(&self.path)?;
        let text = read_settled(&self.path)?;
        let mut records = format::parse(&text, &self.path)?;
        records.apply(change)?;
        let text = format::edit(&text, &self.path, change)?;
        // The text must parse to the intended records, however the file was edited by hand.
        if format::parse(&text, &self.path)? != records {
            let words = "is written in a way that this program cannot edit".to_owned();
            return Err(StoreError::Damaged(self.path.clone(), words).into());
        }
        let stamp = replace(&self.path, &text)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = State {
            kept: None,
            seen: Some(stamp),
            records: Arc::new(records),
            revision: state.revision + 1,
        };
        drop(state);
        drop(lock);
        wait_until_seen();
        Ok(())
    }

    fn revision(&self) -> Result<u64, StoreError> {
        self.current();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Ok(state.revision)
    }

    fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        Ok(self.current().domains())
    }

    fn accounts(&self, page: &Page) -> Result<Vec<Account>, StoreError> {
        Ok(self.current().accounts(page))
    }

    fn aliases(&self, page: &Page) -> Result<Vec<Alias>, StoreError> {
        Ok(self.current().aliases(page))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Waits until every process finds the change.
fn wait_until_seen() {
    std::thread::sleep(FRESH);
}

/// Reads the file and its stamp, as a consistent pair.
fn read(path: &Path) -> Result<(String, Stamp), StoreError> {
    let file = File::open(path).map_err(system("open", path))?;
    let metadata = file.metadata().map_err(system("read", path))?;
    if metadata.size() > FILE_MAX || !metadata.is_file() {
        let words = format!("is no file of at most {FILE_MAX} octets");
        return Err(StoreError::Damaged(path.to_owned(), words));
    }
    let mut octets = Vec::new();
    (&file)
        .take(FILE_MAX)
        .read_to_end(&mut octets)
        .map_err(system("read", path))?;
    let text = String::from_utf8(octets);
    let text = text.map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        StoreError::Damaged(path.to_owned(), format!("octet {at} is not UTF-8"))
    })?;
    Ok((text, Stamp::of(&metadata)))
}

/// Reads the file after any edit in place is over: a change of a half-written file would lose the rest.
fn read_settled(path: &Path) -> Result<String, StoreError> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        let (text, stamp) = read(path)?;
        if !stamp.is_being_edited() {
            return Ok(text);
        }
        if Instant::now() > until {
            return Err(StoreError::Busy(path.to_owned()));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Takes the lock of all changes; it is given back when the file is closed, also by a crash.
fn lock(path: &Path) -> Result<File, StoreError> {
    let place = beside(path, ".lock");
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let file = options.open(&place).map_err(system("open", &place))?;
    give_to_owner_of_folder(&file, &place);
    let until = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(system("lock", &place)(error)),
        }
    }
}

/// Puts `text` in the place of the file, whole or not at all, and durably. Under the lock only.
fn replace(path: &Path, text: &str) -> Result<Stamp, StoreError> {
    let temporary = beside(path, ".new");
    // A temporary file left by a crash may have another owner.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(system("remove", &temporary)(error));
        }
        _ => {}
    }
    let result = write(path, &temporary, text);
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn write(path: &Path, temporary: &Path, text: &str) -> Result<Stamp, StoreError> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(temporary).map_err(system("make", temporary))?;
    match fs::metadata(path) {
        Ok(old) => {
            let _ = std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()));
            let mode = fs::Permissions::from_mode(old.mode() & 0o777);
            file.set_permissions(mode)
                .map_err(system("set permissions of", temporary))?;
        }
        Err(_) => give_to_owner_of_folder(&file, path),
    }
    file.write_all(text.as_bytes())
        .map_err(system("write", temporary))?;
    file.sync_all().map_err(system("sync", temporary))?;
    fs::rename(temporary, path).map_err(system("rename to", path))?;
    let parent = folder(path);
    let opened = File::open(parent).map_err(system("open folder", parent))?;
    opened.sync_all().map_err(system("sync folder", parent))?;
    // The file that was written, not whatever lies there by now.
    let metadata = file.metadata().map_err(system("read", path))?;
    Ok(Stamp::of(&metadata))
}

/// A file beside the given file.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(end);
    path.with_file_name(name)
}
