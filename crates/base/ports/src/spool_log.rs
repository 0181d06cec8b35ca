//! The log of a spool node: one per queue group, appended in order, synced in the background.
//!
//! The engine says what to keep and for how long; the log knows nothing of queues. An *entry* is
//! appended whole and comes back whole or not at all. A log consists of numbered *segments*, each of
//! which begins with a *head* that the engine writes: enough to understand the entries after it
//! without the segments before.

use std::fmt;
use std::path::PathBuf;

/// Octets appended to a log since it began, entries of removed segments included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition(pub u64);

/// Why a log did not do as asked. Always a local trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogError {
    /// No room, the reserve included. Nothing was written; it may be tried again.
    Full,
    /// Writing or syncing failed. Final: what was not reported as synced never will be.
    Failed(String),
    /// What was written and synced is not what is there now. Final for this log; another one may be begun
    /// in its place ([`SpoolLogStore::replace`]).
    Damaged(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("no room left for the log"),
            Self::Failed(reason) => write!(f, "log failed: {reason}"),
            Self::Damaged(reason) => write!(f, "log damaged: {reason}"),
        }
    }
}

impl std::error::Error for LogError {}

/// How much room a log has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRoom {
    /// Enough.
    Plenty,
    /// Only what is set aside for ending records: nothing new should come in.
    Reserve,
}

/// Entries of one segment that lie one after the other: their contents fill a buffer together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogStretch {
    /// The segment.
    pub segment: u64,
    /// Where the first entry begins in its file.
    pub offset: u64,
    /// The position of the first entry.
    pub position: u64,
    /// Octets of all contents.
    pub octets: u32,
}

/// A stretch that was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct LogRead {
    /// Which.
    pub stretch: LogStretch,
    /// The buffer that was given, with the contents at its beginning when they could be read.
    pub octets: Vec<u8>,
    /// What the system says, or that it is not what was written.
    pub result: Result<(), String>,
}

/// The log of one group.
pub trait SpoolLog {
    /// Appends an entry to the newest segment and gives the position after it.
    ///
    /// # Errors
    ///
    /// [`LogError::Full`] leaves the log as it was; [`LogError::Failed`] is final.
    fn append(&mut self, entry: &[u8]) -> Result<LogPosition, LogError>;

    /// Starts syncing what was appended, unless that is under way already; [`SpoolLog::synced`] moves
    /// on some time later and the host is woken.
    fn start_sync(&mut self);

    /// As [`SpoolLog::start_sync`], where only one waits for what was appended and this thread has nothing
    /// else to do: what takes no longer than to wake another thread for it may be done when this returns.
    fn sync_alone(&mut self) {
        self.start_sync();
    }

    /// Everything before this position is on stable storage.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`] once a sync failed, for ever.
    fn synced(&self) -> Result<LogPosition, LogError>;

    /// The number of the newest segment, to which the next entry goes.
    fn newest(&self) -> u64;

    /// Whether the newest segment is long enough to begin another one.
    fn wants_roll(&self) -> bool;

    /// Begins another segment with this head.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn roll(&mut self, head: &[u8]) -> Result<(), LogError>;

    /// Removes the segments before the one of this number, once everything appended until now is on
    /// stable storage; the newest always stays.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`].
    fn remove_before(&mut self, segment: u64) -> Result<(), LogError>;

    /// To be called about once a second: notes how far it is synced, looks for room.
    fn keep_house(&mut self);

    /// Octets in files.
    fn octets(&self) -> u64;

    /// Whether new records should be taken.
    fn room(&self) -> LogRoom;

    /// Starts reading the contents of entries again, of which an outline was given
    /// ([`LogReader::outline`]), into a buffer that is at least as long. The host is woken when that
    /// is done. A segment that was removed meanwhile cannot be read.
    fn read_back(&mut self, stretch: LogStretch, into: Vec<u8>);

    /// A reading that is done, if there is one.
    fn poll_read(&mut self) -> Option<LogRead>;
}

/// Makes the logs of new groups.
pub trait SpoolLogStore {
    /// The log it makes.
    type Log: SpoolLog;

    /// Begins the log of a group that has none, with the head of its first segment.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn create(&mut self, group: &str, head: &[u8]) -> Result<Self::Log, LogError>;

    /// Sets aside what there is of a group, for it is damaged, and begins another log in its place. A crash
    /// at any moment leaves word that the group was here.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn replace(&mut self, group: &str, head: &[u8]) -> Result<Self::Log, LogError>;

    /// Removes the log of a group that has ended, and what was set aside of it. When this returns no crash brings
    /// it back. What its log is still asked for fails.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`]; the log may be there still.
    fn remove(&mut self, group: &str) -> Result<(), LogError>;

    /// Whether something of a group is set aside.
    fn is_aside(&self, group: &str) -> bool;

    /// The group is whole again: what was set aside of it goes.
    fn discard(&mut self, group: &str);
}

/// Makes outlines of entries: what a reader needs of them but for what it can read later. A log that
/// has it keeps the outlines of old segments apart, so that it need not read these whole at a start.
#[derive(Debug, Clone, Copy)]
pub struct LogOutliner {
    /// The version of the outlines.
    pub version: u32,
    /// Appends the outline of an entry.
    pub outline: fn(&[u8], &mut Vec<u8>) -> Result<(), UnreadableEntry>,
    /// Whether this may be the outline of an entry of so many octets.
    pub check: fn(&[u8], u32) -> bool,
}

/// Where an entry lies of which the outline is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlinedEntry {
    /// The segment.
    pub segment: u64,
    /// Where it begins in the segment's file.
    pub offset: u64,
    /// Its position.
    pub position: u64,
    /// Octets of its content.
    pub len: u32,
}

/// Takes what a log held, in order: the head of each segment and the entries after it.
pub trait LogReader {
    /// Makes the outlines that this takes in place of entries; `None`: it takes none.
    fn outliner(&self) -> Option<LogOutliner> {
        None
    }

    /// The next entry of a segment, of which only the outline is given. It stays where it is until
    /// its segment is removed.
    ///
    /// # Errors
    ///
    /// [`UnreadableEntry`] when it is not what was written; for who takes none, always.
    fn outline(&mut self, entry: OutlinedEntry, outline: &[u8]) -> Result<(), UnreadableEntry> {
        let len = outline.len();
        Err(UnreadableEntry(format!(
            "outline of {len} octets at position {} where none is wanted",
            entry.position
        )))
    }

    /// The head of segment `number`.
    ///
    /// # Errors
    ///
    /// [`UnreadableEntry`] when it is not what was written.
    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry>;

    /// The next entry of segment `number`.
    ///
    /// # Errors
    ///
    /// [`UnreadableEntry`] when it is not what was written.
    fn entry(&mut self, number: u64, entry: &[u8]) -> Result<(), UnreadableEntry>;
}

/// An entry whose checksum is right but whose content makes no sense: written by a later version, or
/// a fault of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEntry(pub String);

/// Why a log was not opened. The node must not serve: its queues are not empty but unknown.
#[derive(Debug)]
pub enum OpenLogError {
    /// Octets within what was synced are not what was written.
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where in it the damage begins.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The checksums are right and the content makes no sense: it was written by a later version, or by a
    /// fault of our own. Nothing is wrong with the disk.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Where in it that is.
        offset: u64,
        /// What makes no sense.
        reason: String,
    },
    /// Written by a version this one does not read.
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Another process uses the directory.
    Locked {
        /// The lock file.
        file: PathBuf,
    },
    /// A file could not be read or written.
    Io {
        /// The file or directory.
        file: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

impl fmt::Display for OpenLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged {
                file,
                offset,
                reason,
            } => {
                write!(
                    f,
                    "{} is damaged at offset {offset}: {reason}",
                    file.display()
                )
            }
            Self::Unreadable {
                file,
                offset,
                reason,
            } => {
                write!(
                    f,
                    "{} makes no sense at offset {offset}: {reason}",
                    file.display()
                )
            }
            Self::Version { file, version } => {
                write!(
                    f,
                    "{} has format version {version}, not read here",
                    file.display()
                )
            }
            Self::Locked { file } => {
                write!(f, "{} is locked by another process", file.display())
            }
            Self::Io { file, error } => write!(f, "{}: {error}", file.display()),
        }
    }
}

impl std::error::Error for OpenLogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
