//! The log of a spool node: one per queue group, appended in order, synced in the background.
//!
//! The engine decides on the entries to keep, and for how long; the log knows nothing of queues. An *entry* is
//! appended whole, and read back whole or not at all. A log consists of numbered *segments*. Each segment begins with
//! a *head* written by the engine, enough to understand the segment's entries without earlier segments.

use std::path::PathBuf;

/// Octets appended to a log since it began, entries of removed segments included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition(pub u64);

/// The reason for a failed log operation; always a local fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The disk is full, the reserve included. The log is unchanged, and the operation can be retried.
    #[error("no room left for the log")]
    Full,
    /// Writing or syncing failed. Final: entries not yet reported as synced will never be synced.
    #[error("log failed: {0}")]
    Failed(String),
    /// Synced entries fail verification. Final for this log; a new log can replace the damaged log
    /// ([`SpoolLogStore::replace`]).
    #[error("log damaged: {0}")]
    Damaged(String),
}

/// The space left to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRoom {
    /// Enough.
    Plenty,
    /// Only the reserve for ending records: the node should accept no new records.
    Reserve,
}

/// Consecutive entries of a segment, whose contents together fill a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogStretch {
    /// The segment.
    pub segment: u64,
    /// Offset of the first entry in the file.
    pub offset: u64,
    /// The position of the first entry.
    pub position: u64,
    /// Octets of all contents.
    pub octets: u32,
}

/// A finished read of a stretch.
#[derive(Debug, PartialEq, Eq)]
pub struct LogRead {
    /// The requested stretch.
    pub stretch: LogStretch,
    /// The buffer of the request, with the contents at the beginning if the read succeeded.
    pub octets: Vec<u8>,
    /// The error of the system, or of a failed verification.
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

    /// Starts syncing the appended entries, unless a sync runs already. [`SpoolLog::synced`] advances later, and the
    /// host is woken.
    fn start_sync(&mut self);

    /// Like [`SpoolLog::start_sync`], for a thread without other work and a single waiting transaction. A log may
    /// sync at once here, if syncing takes no longer than waking another thread.
    fn sync_alone(&mut self) {
        self.start_sync();
    }

    /// The position up to which all octets are on stable storage.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`] once a sync failed, permanently.
    fn synced(&self) -> Result<LogPosition, LogError>;

    /// The number of the newest segment, to which the next entry goes.
    fn newest(&self) -> u64;

    /// Whether the newest segment is long enough to start the next segment.
    fn wants_roll(&self) -> bool;

    /// Begins another segment with this head.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn roll(&mut self, head: &[u8]) -> Result<(), LogError>;

    /// Removes the segments before number `segment`, once all entries appended until now are on stable storage. The
    /// newest segment always stays.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`].
    fn remove_before(&mut self, segment: u64) -> Result<(), LogError>;

    /// Housekeeping, to be called about once a second: records the synced position and checks the free space.
    fn keep_house(&mut self);

    /// Octets in files.
    fn octets(&self) -> u64;

    /// Whether new records should be taken.
    fn room(&self) -> LogRoom;

    /// Starts reading the contents of outlined entries ([`LogReader::outline`]) into a buffer of at least their
    /// length. The host is woken after the read. Reads of a segment removed meanwhile fail.
    fn read_back(&mut self, stretch: LogStretch, into: Vec<u8>);

    /// Returns the next finished read, if any.
    fn poll_read(&mut self) -> Option<LogRead>;
}

/// Makes the logs of new groups.
pub trait SpoolLogStore {
    /// The type of the logs.
    type Log: SpoolLog;

    /// Begins the log of a group without a log, with the head of the first segment.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn create(&mut self, group: &str, head: &[u8]) -> Result<Self::Log, LogError>;

    /// Sets the damaged log of a group aside and starts a new log. After a crash at any moment the store still knows
    /// that the group existed.
    ///
    /// # Errors
    ///
    /// As [`SpoolLog::append`].
    fn replace(&mut self, group: &str, head: &[u8]) -> Result<Self::Log, LogError>;

    /// Removes the log of an ended group, and files set aside for the group. On return the removal survives a crash.
    /// Further operations of the removed log fail.
    ///
    /// # Errors
    ///
    /// [`LogError::Failed`]; the log may still exist.
    fn remove(&mut self, group: &str) -> Result<(), LogError>;

    /// Whether files of a group are set aside.
    fn is_aside(&self, group: &str) -> bool;

    /// Removes the files set aside for a group, once the group is complete again.
    fn discard(&mut self, group: &str);
}

/// Produces outlines of entries: the parts that a reader needs at once; contents can be read later. With an outliner,
/// a log keeps the outlines of old segments apart, and need not read old segments whole at a start.
#[derive(Debug, Clone, Copy)]
pub struct LogOutliner {
    /// The version of the outlines.
    pub version: u32,
    /// Appends the outline of an entry.
    pub outline: fn(&[u8], &mut Vec<u8>) -> Result<(), UnreadableEntry>,
    /// Whether octets are a plausible outline of an entry of the given length.
    pub check: fn(&[u8], u32) -> bool,
}

/// The place of an outlined entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlinedEntry {
    /// The segment.
    pub segment: u64,
    /// The offset of the entry in the segment's file.
    pub offset: u64,
    /// The position of the entry.
    pub position: u64,
    /// Octets of the content.
    pub len: u32,
}

/// Receives the contents of a log in order: the head of each segment, then the entries of the segment.
pub trait LogReader {
    /// Returns the outliner for old segments; `None` if the reader needs whole entries.
    fn outliner(&self) -> Option<LogOutliner> {
        None
    }

    /// Receives the outline of the next entry of a segment. The entry stays in place until the segment is removed.
    ///
    /// # Errors
    ///
    /// [`UnreadableEntry`] if the outline makes no sense; always for readers without an outliner.
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
    /// [`UnreadableEntry`] if the octets make no sense.
    fn head(&mut self, number: u64, head: &[u8]) -> Result<(), UnreadableEntry>;

    /// The next entry of segment `number`.
    ///
    /// # Errors
    ///
    /// [`UnreadableEntry`] if the octets make no sense.
    fn entry(&mut self, number: u64, entry: &[u8]) -> Result<(), UnreadableEntry>;
}

/// An entry with a correct checksum whose content makes no sense: written by a later version, or a fault of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableEntry(pub String);

/// The reason why a log was not opened. The node must not serve: the contents of its queues are unknown, not empty.
#[derive(Debug, thiserror::Error)]
pub enum OpenLogError {
    /// Synced octets fail verification.
    #[error("{file} is damaged at offset {offset}: {reason}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The offset of the damage in the file.
        offset: u64,
        /// The fault at the offset.
        reason: String,
    },
    /// The checksums are right and the content makes no sense: written by a later version, or a fault of our own. The
    /// disk is not at fault.
    #[error("{file} makes no sense at offset {offset}: {reason}")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The offset of the entry in the file.
        offset: u64,
        /// The reason.
        reason: String,
    },
    /// The format version is unknown to this version of the program.
    #[error("{file} has format version {version}, not read here")]
    Version {
        /// The file.
        file: PathBuf,
        /// The format version of the file.
        version: u32,
    },
    /// Another process uses the directory.
    #[error("{file} is locked by another process")]
    Locked {
        /// The lock file.
        file: PathBuf,
    },
    /// A file could not be read or written.
    #[error("{file}: {error}")]
    Io {
        /// The file or directory.
        file: PathBuf,
        /// The error of the system.
        #[source]
        error: std::io::Error,
    },
}
